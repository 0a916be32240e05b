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
    private static final String P = Options.PREFIX;

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
        var options = new Options(conf);
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
            ledgersPath = options.path("ledgers", "/ledgers");
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
        root = options.path("root", "/eos-bk");
        sessionTimeoutMs = options.number("session.timeout.ms", 30_000, 1);
        patienceMs = options.number("patience.ms", 120_000L, 1);
        // Set by tools: who only looks makes no tree of names.
        makeRoot = conf.getBoolean(P + "make-root", true);
        security = new Security(conf);
        acl = security.acl;
        security.configure(zkConfig);
        // A listing is one answer; the client's own limit of 1 MiB would end at about 15,000 names.
        zkConfig.setProperty("jute.maxbuffer", Integer.toString(64 * MIB));
        conf.getPropsWithPrefix(P + "zookeeper.").forEach((k, v) -> zkConfig.setProperty("zookeeper." + k, v));
        bookkeeper = conf.getPropsWithPrefix(P + "bookkeeper.");
        ensemble = options.number("ensemble", 0, 0);
        writeQuorum = options.number("write-quorum", 0, 0);
        ackQuorum = options.number("ack-quorum", 0, 0);
        digest = options.oneOf("digest", DigestType.CRC32C);
        password = Security.secret(conf, P + "password").getBytes(java.nio.charset.StandardCharsets.UTF_8);
        entrySize = Math.min(options.number("entry.bytes", MIB, 1), MIB);
        window = options.number("window", 16, 1);
        packFileLimit = Math.min(options.number("pack.file.bytes", MIB, 0), MIB);
        packBytes = options.number("pack.bytes", 64L * MIB, 1);
        packAgeMs = options.number("pack.age.ms", 600_000L, 1);
        packFiles = options.number("pack.files", 2_000, 1);
        cacheBytes = options.number("cache.bytes", 32L * MIB, 0);
        renameLimit = options.number("rename.limit", 500, 1);
        graceMs = options.number("grace.ms", 3_600_000L, 0);
        maintenanceMs = options.number("maintenance.ms", 300_000L, 0);
        compactBelow = options.part("compact.below", 0.25);
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
