/**
 * {@code bk://}: Hadoop's file system on Apache BookKeeper, made for Spark's checkpoints and streaming state.
 *
 * <p>Begin at {@link eos.bk.BookKeeperFileSystem} (what is promised), then {@code Names} (the tree in ZooKeeper), {@code
 * Zk} (why an outcome is always known), {@code Packs} and {@code Ledgers} (bytes), {@code Sweeper} and {@code Compactor};
 * {@link eos.bk.Savepoints}, {@link eos.bk.Look} and {@link eos.bk.Maintenance} are what Python calls. Whatever lies in
 * ZooKeeper is written and read here alone.
 *
 * <p>The options {@code fs.bk.…}, with their defaults, are in {@code statestore/hadoop/options.py}; {@code Settings} reads them.
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
 *   <li>Its threads aren't daemons: {@code Client} closes it when no other thread keeps the JVM.
 *   <li>It looks for netty's old io_uring classes by name: they are in the jar. rocksdbjni, a bookie's, isn't:
 *       it would break Spark's own RocksDB.
 * </ul>
 */
package eos.bk;
