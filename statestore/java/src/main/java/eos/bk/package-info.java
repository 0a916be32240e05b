/**
 * {@code bk://}: Hadoop's file system on Apache BookKeeper, made for Spark's checkpoints and streaming state.
 *
 * <p>Begin at {@link eos.bk.BookKeeperFileSystem} (what is promised), then {@code Names} (the tree in ZooKeeper), {@code
 * Zk} (why an outcome is always known), {@code Packs} and {@code Ledgers} (bytes), {@code Sweeper} and {@code Compactor}.
 *
 * <h2>Options</h2>
 *
 * <pre>
 * fs.bk.NAME.metadata-service-uri   the ensemble of bk://NAME/: zk://zk1:2181;zk2:2181/ledgers
 * fs.bk.ledgers (/ledgers)          BookKeeper's path in ZooKeeper, for bk://host:port/
 * fs.bk.root (/eos-bk)              our path in ZooKeeper: one tree of names each
 * fs.bk.ensemble, .write-quorum, .ack-quorum   3/3/2, or what the bookies allow, said in a warning
 * fs.bk.digest (CRC32C), fs.bk.password        of each ledger; the password may come from a credential provider
 * fs.bk.entry.bytes (1 MiB, at most)           fs.bk.window (16): entries on their way for a large file
 * fs.bk.pack.file.bytes (1 MiB, at most)       larger files get their own ledger
 * fs.bk.pack.bytes (64 MiB), .pack.age.ms (10 min), .pack.files (2000)   when a pack is rolled
 * fs.bk.cache.bytes (32 MiB)        read cache for small files
 * fs.bk.session.timeout.ms (30 s), fs.bk.patience.ms (2 min)   how long ZooKeeper may stay away
 * fs.bk.rename.limit (500)          names in a directory that is renamed
 * fs.bk.grace.ms (1 h)              how long a ledger without references, or a dead writer's, is left alone
 * fs.bk.maintenance.ms (5 min; 0: never)       between rounds of the sweeper, every 12th with compaction
 * fs.bk.compact.below (0.25)        live part of a pack below which it is compacted
 * fs.bk.zookeeper-auth              digest:user:password; then our znodes are for that user only
 * fs.bk.zookeeper.*                 ZooKeeper's client options (zookeeper.*), TLS among them: client.secure, ssl.…
 * fs.bk.bookkeeper.*                BookKeeper's client options, TLS among them: tlsProvider, tlsTrustStore, …
 * </pre>
 *
 * <h2>What BookKeeper 4.17.3 makes us go round</h2>
 *
 * <ul>
 *   <li>Its ledger listing ends after one ZooKeeper range (bookkeeper#4731): {@code Sweeper} reads the ranges.
 *   <li>Its own ZooKeeper client retries writes blindly: it works on a plain one of ours.
 *   <li>An entry over its frame limit looks like dead bookies: entries have at most 1 MiB.
 *   <li>A deleted ledger still acknowledges appends: a file is visible only with a reference under its ledger's znode.
 *   <li>The last entry that readers see trails by one: {@code Ledgers} reads the published range unconfirmed, and never
 *       opens with recovery what may have a live writer.
 *   <li>{@code LedgerEntry.getLength} is the ledger's length so far, not the entry's.
 *   <li>Calls fail, and appends fail their ledger, when the thread is interrupted: they start with the flag put aside.
 *   <li>An error inside its client (a missing class) loses the answer: every wait has an end.
 *   <li>It looks for netty's old io_uring classes by name: they are in the jar. rocksdbjni, a bookie's, isn't:
 *       it would break Spark's own RocksDB.
 * </ul>
 */
package eos.bk;
