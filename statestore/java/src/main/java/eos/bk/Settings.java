package eos.bk;

import java.io.IOException;
import java.net.URI;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.bookkeeper.client.api.DigestType;
import org.apache.bookkeeper.conf.ClientConfiguration;
import org.apache.hadoop.conf.Configuration;
import org.apache.zookeeper.client.ZKClientConfig;
import org.apache.zookeeper.data.ACL;

/**
 * What a {@code bk://} address and the Hadoop options {@code fs.bk.…} say; read once, never changed. Two file systems
 * with equal {@link #key} share one client.
 */
final class Settings {
    static final int MIB = 1 << 20;
    private static final String P = "fs.bk.";

    final String key;
    final String zkServers;
    final String ledgersPath;
    final String root;
    final int sessionTimeoutMs;
    final long patienceMs;
    final boolean makeRoot;
    final Security security;
    final List<ACL> acl;
    final ZKClientConfig zkConfig = new ZKClientConfig();
    final Map<String, String> bookkeeper;
    final int ensemble;
    final int writeQuorum;
    final int ackQuorum;
    final DigestType digest;
    final byte[] password;
    final int entrySize;
    final int window;
    final int packFileLimit;
    final long packBytes;
    final long packAgeMs;
    final int packFiles;
    final long cacheBytes;
    final int renameLimit;
    final long graceMs;
    final long maintenanceMs;
    final double compactBelow;

    Settings(URI uri, Configuration conf) throws IOException {
        if (uri.getHost() == null) {
            throw new IOException("bk address " + uri + " has no host that Java can read: use bk://host:port/ for one "
                    + "ZooKeeper, or a name of letters, digits and hyphens for an ensemble, bk://NAME/, with its address in "
                    + P
                    + "NAME.metadata-service-uri");
        }
        var named = conf.getTrimmed(P + uri.getHost() + ".metadata-service-uri");
        if (uri.getPort() < 0 && named == null) {
            throw new IOException("bk address " + uri + " has no port, and " + P + uri.getHost()
                    + ".metadata-service-uri is not set; it would say, for example, zk://zk1:2181;zk2:2181/ledgers");
        }
        if (uri.getPort() >= 0) {
            zkServers = uri.getHost() + ":" + uri.getPort();
            ledgersPath = conf.getTrimmed(P + "ledgers", "/ledgers");
        } else {
            // Semicolons between servers, as BookKeeper writes them, which java.net.URI reads as no host.
            var service = named.replaceFirst("^zk(\\+[a-z]+)?://", "");
            int slash = service.indexOf('/');
            if (slash < 0 || service.equals(named)) {
                throw new IOException(P + uri.getHost() + ".metadata-service-uri is " + named
                        + ", not of the form zk://server:port;server:port/ledgers");
            }
            zkServers = service.substring(0, slash).replace(';', ',');
            ledgersPath = service.substring(slash);
        }
        root = conf.getTrimmed(P + "root", "/eos-bk");
        sessionTimeoutMs = conf.getInt(P + "session.timeout.ms", 30_000);
        patienceMs = conf.getLong(P + "patience.ms", 120_000);
        // Set by tools: who only looks makes no tree of names.
        makeRoot = conf.getBoolean(P + "make-root", true);
        security = new Security(conf);
        acl = security.acl;
        security.configure(zkConfig);
        // A listing is one answer; the client's own limit of 1 MiB would end at about 15,000 names.
        zkConfig.setProperty("jute.maxbuffer", Integer.toString(64 * MIB));
        conf.getPropsWithPrefix(P + "zookeeper.").forEach((k, v) -> zkConfig.setProperty("zookeeper." + k, v));
        bookkeeper = conf.getPropsWithPrefix(P + "bookkeeper.");
        ensemble = conf.getInt(P + "ensemble", 0);
        writeQuorum = conf.getInt(P + "write-quorum", 0);
        ackQuorum = conf.getInt(P + "ack-quorum", 0);
        digest = DigestType.valueOf(conf.getTrimmed(P + "digest", "CRC32C"));
        password = Security.secret(conf, P + "password").getBytes(java.nio.charset.StandardCharsets.UTF_8);
        entrySize = Math.min(conf.getInt(P + "entry.bytes", MIB), MIB);
        window = conf.getInt(P + "window", 16);
        packFileLimit = Math.min(conf.getInt(P + "pack.file.bytes", MIB), MIB);
        packBytes = conf.getLong(P + "pack.bytes", 64L * MIB);
        packAgeMs = conf.getLong(P + "pack.age.ms", 600_000);
        packFiles = conf.getInt(P + "pack.files", 2_000);
        cacheBytes = conf.getLong(P + "cache.bytes", 32L * MIB);
        renameLimit = conf.getInt(P + "rename.limit", 500);
        graceMs = conf.getLong(P + "grace.ms", 3_600_000);
        maintenanceMs = conf.getLong(P + "maintenance.ms", 300_000);
        compactBelow = conf.getDouble(P + "compact.below", 0.25);
        if (entrySize < 1 || window < 1) {
            throw new IOException(P + "entry.bytes and " + P + "window must be positive");
        }
        key = uri.getAuthority() + " " + new TreeMap<>(conf.getPropsWithPrefix(P));
    }

    ClientConfiguration bookkeeperConfiguration() throws Failed {
        var conf = new ClientConfiguration();
        conf.setMetadataServiceUri("zk+null://" + zkServers.replace(',', ';') + ledgersPath);
        // With a ZooKeeper client of ours, BookKeeper takes the ledgers' path from here and not from the address.
        conf.setProperty("zkLedgersRootPath", ledgersPath);
        // A pack is written by many threads; a slow bookie must show as a slow write, not as a lost ledger.
        conf.setAddEntryTimeout(30);
        conf.setReadEntryTimeout(15);
        conf.setNumWorkerThreads(2);
        conf.setNumIOThreads(2);
        security.configure(conf);
        bookkeeper.forEach(conf::setProperty);
        return conf;
    }
}
