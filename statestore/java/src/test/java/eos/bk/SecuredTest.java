package eos.bk;

import static eos.bk.TestTree.random;
import static eos.bk.TestTree.read;
import static eos.bk.TestTree.write;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.bookkeeper.client.BookKeeperAdmin;
import org.apache.bookkeeper.common.component.LifecycleComponentStack;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.AccessControlException;
import org.apache.zookeeper.ZKUtil;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.ZooKeeperMain;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.server.auth.DigestAuthenticationProvider;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A ZooKeeper with TLS beside its plain port, a bookie that demands TLS and a role, and who is let in to what. */
@Tag("long")
@Timeout(120)
class SecuredTest {
    private static final String SECRET = "pa55word-of-the-job";
    private static final String OWNER = "digest:job:" + SECRET;
    private static final String OPS = "digest:ops:pa55word-of-ops";
    /** A refusal that takes as long as this was tried again: an append is, five times in 6 s. */
    private static final long AT_ONCE_MS = 5_500;

    private static final long SOON_MS = 15_000;

    private static final String TLS_AND_ROLE = "with TLS (fs.bk.tls) and a certificate of a role that";

    @TempDir
    private static Path home;

    private static Process zookeeper;
    private static int plainPort;
    private static int tlsPort;
    private static LifecycleComponentStack bookie;

    private final Configuration conf = new Configuration();

    @BeforeAll
    static void start() throws Exception {
        var certificates = new Certificates(home);
        certificates.authority("authority");
        certificates.authority("other");
        certificates.signed("server", "authority", "CN=server", "dns:localhost");
        certificates.signed("bookie", "authority", "CN=bookie", "ip:127.0.0.1");
        certificates.signed("job", "authority", "CN=job,OU=0:eos", "dns:job");
        certificates.signed("ops", "authority", "CN=ops,OU=0:eos", "dns:ops");
        certificates.signed("norole", "authority", "CN=norole", "dns:job");
        certificates.signed("stranger", "other", "CN=stranger,OU=0:eos", "dns:job");
        certificates.signed("expired", "authority", "CN=expired,OU=0:eos", "dns:job", "-startdate", "-9d");
        certificates.signed("elsewhere", "authority", "CN=elsewhere", "dns:elsewhere");
        plainPort = TestCluster.freePort();
        tlsPort = TestCluster.freePort();
        zookeeper = SecuredServers.zookeeper(home, "want", plainPort, tlsPort);
        connect(zk -> {});
        ServerConfiguration first = SecuredServers.bookie(home, plainPort, "bookie");
        BookKeeperAdmin.initNewCluster(first);
        bookie = TestCluster.start(first);
    }

    @AfterAll
    static void stop() throws Exception {
        bookie.close();
        zookeeper.destroyForcibly().waitFor();
    }

    private static String pem(String name) {
        return home.resolve(name + ".pem").toString();
    }

    @BeforeEach
    void configure() throws IOException {
        conf.set("fs.bk.root", "/t" + UUID.randomUUID());
        conf.setInt("fs.bk.maintenance.ms", 0);
        conf.setInt("fs.bk.patience.ms", 600_000);
        conf.set("fs.bk.zookeeper-auth", "file:" + Files.writeString(home.resolve("auth"), OWNER + "\n"));
        conf.set("fs.bk.tls", "all");
        conf.set("fs.bk.tls.trust-certs", pem("authority"));
        conf.set("fs.bk.tls.certificate", pem("job"));
    }

    @AfterEach
    void forget() {
        BookieTls.forget();
    }

    private Client client() throws IOException {
        return client("localhost:" + tlsPort);
    }

    private Client client(String address) throws IOException {
        return new Client(new Settings(URI.create("bk://" + address), conf));
    }

    @Test
    void filesAreForTheirMakerAndThoseWhomHeLetsRead() throws Exception {
        String hash = DigestAuthenticationProvider.generateDigest("ops:pa55word-of-ops");
        conf.set("fs.bk.zookeeper-readers", "digest:" + hash);
        byte[] small = random(1000);
        byte[] large = random(3 << 20);
        Client owner = client();
        owner.names.mkdirs("/d");
        write(owner, "/d/small", small);
        write(owner, "/d/large", large);
        Client again = client();
        assertArrayEquals(small, read(again, "/d/small"));
        assertArrayEquals(large, read(again, "/d/large"));
        again.close();

        var expected = Set.of(
                new ACL(31, new Id("digest", DigestAuthenticationProvider.generateDigest("job:" + SECRET))),
                new ACL(31, new Id("x509", "CN=job,OU=0:eos")),
                new ACL(1, new Id("digest", hash)));
        var lists = accessLists(owner);
        assertTrue(lists.size() > 10, lists.toString());
        lists.forEach((path, list) -> assertEquals(expected, Set.copyOf(list), path));

        conf.set("fs.bk.zookeeper-auth", OPS);
        conf.set("fs.bk.tls.certificate", pem("ops"));
        Client reader = client();
        assertArrayEquals(small, read(reader, "/d/small"));
        assertArrayEquals(large, read(reader, "/d/large"));
        mustRefuse(
                "This client may only read under " + owner.settings.root + " in ZooKeeper: it is the digest user ops",
                () -> write(reader, "/d/new", small));
        mustRefuse("ZooKeeper refuses access", () -> write(reader, "/d/empty", new byte[0]));
        mustRefuse("ZooKeeper refuses access", () -> reader.names.delete("/d/small", false));
        reader.close();
        assertArrayEquals(small, read(owner, "/d/small"));
        owner.close();
    }

    @ParameterizedTest
    @CsvSource({
        "digest:job:another, 'to this client, which is the digest user job, by fs.bk.zookeeper-auth. Set that to'",
        "'', 'to this client, which is nobody, by fs.bk.zookeeper-auth. Set that to digest:user:password'",
    })
    void whoShowsAnotherSecretIsRefusedAtOnce(String shown, String said) throws Exception {
        Client owner = client();
        write(owner, "/x", random(10));
        conf.set("fs.bk.zookeeper-auth", shown);
        conf.set("fs.bk.tls.certificate", pem("norole"));
        mustRefuse(said, () -> client().session());
        assertThrows(AccessControlException.class, () -> client().session());
        owner.close();
    }

    @Test
    void aTreeThatAllMayUseStaysSoAndWhatIsNewIsForItsMaker() throws Exception {
        String auth = conf.get("fs.bk.zookeeper-auth");
        conf.unset("fs.bk.zookeeper-auth");
        conf.set("fs.bk.tls.certificate", pem("ops"));
        Client before = client();
        before.names.mkdirs("/d");
        write(before, "/d/old", random(10));
        conf.set("fs.bk.zookeeper-auth", auth);
        conf.set("fs.bk.tls.certificate", pem("job"));
        Client owner = client();
        assertArrayEquals(random(10), read(owner, "/d/old"));
        write(owner, "/d/new", random(20));
        owner.names.delete("/d/old", false);
        assertArrayEquals(random(20), read(client(), "/d/new"));
        mustRefuse("which is nobody, by fs.bk.zookeeper-auth", () -> read(before, "/d/new"));
        // A listing without the file would say that there is none.
        mustRefuse("which is nobody, by fs.bk.zookeeper-auth", () -> before.names.list("/d"));

        var shell = new ZooKeeperMain(new String[] {"-server", "127.0.0.1:" + plainPort, "-waitforconnection"});
        shell.executeLine("addauth digest job:" + SECRET);
        shell.executeLine("setAcl -R " + owner.settings.root + " auth::cdrwa");
        mustRefuse("which is nobody, by fs.bk.zookeeper-auth", () -> before.names.list("/d"));
        assertArrayEquals(random(20), read(owner, "/d/new"));
        before.close();
        owner.close();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "localhost | tls | authority | fs.bk.tls=none | it speaks TLS there, and this client is not told to",
                "localhost | plain | authority | fs.bk.tls=all | it answers there without TLS: is that its port for"
                        + " TLS?",
                "localhost | tls | other | fs.bk.tls=all | its certificate is not trusted (unable to find valid",
                "localhost | tls | authority | fs.bk.tls.trust-certs= | fs.bk.tls.trust-certs is not set: a PEM file",
                "localhost | tls | authority | fs.bk.tls.certificate=no.pem | no.pem, which is no file",
                "localhost | tls | authority | fs.bk.tls.certificate=all.p12 | certificates for ZooKeeper can't be"
                        + " used",
                "localhost | tls | authority | fs.bk.tls.trust-certs=all.p12 | certificates for ZooKeeper can't be"
                        + " used",
                "localhost | tls | authority | fs.bk.zookeeper-auth=file:/no/file | names /no/file, which is no file",
                "localhost | tls | authority | fs.bk.zookeeper-auth=pa55word-of-the-job | is not of the form digest:",
            })
    void aZooKeeperThatIsNotUnderstoodIsToldAtOnce(
            String host, String port, String authority, String option, String said) {
        conf.set("fs.bk.tls.trust-certs", pem(authority));
        var value = option.substring(option.indexOf('=') + 1);
        conf.set(
                option.substring(0, option.indexOf('=')),
                value.endsWith(".pem") || value.endsWith(".p12")
                        ? home.resolve(value).toString()
                        : value);
        mustRefuse(said, () -> client(host + ":" + (port.equals("tls") ? tlsPort : plainPort))
                .session());
    }

    /** ZooKeeper's client looks up the name of an address; this one has none. */
    @Test
    void aZooKeeperWithAnotherCertificateIsNamed() throws Exception {
        try (var proxy = new TcpProxy("127.0.0.1:" + tlsPort, InetAddress.getByName("127.0.0.2"))) {
            String address = "127.0.0.2:" + proxy.port();
            mustRefuse("its certificate is for another host (No subject alt", () -> client(address)
                    .session());
        }
    }

    @Test
    void aCertificateAloneMayBeWhoAClientIs() throws Exception {
        conf.unset("fs.bk.zookeeper-auth");
        conf.set("fs.bk.zookeeper-acl", "creator");
        Client owner = client();
        write(owner, "/x", random(10));
        assertEquals(
                Set.of(new ACL(31, new Id("x509", "CN=job,OU=0:eos"))),
                Set.copyOf(accessLists(owner).get("/n/x")));
        conf.set("fs.bk.tls.certificate", pem("norole"));
        mustRefuse("to this client, which is nobody, by fs.bk.zookeeper-auth", () -> client().session());
        owner.close();
    }

    /**
     * A server that wants a certificate says whose, and Java shows no other: without one, or with another authority's,
     * this client comes without.
     */
    @ParameterizedTest
    @CsvSource({"want, expired", "need, stranger", "need, ''"})
    void aZooKeeperThatRefusesACertificateIsToldAtOnce(String clientAuth, String certificate) throws Exception {
        int port = TestCluster.freePort();
        Process other = SecuredServers.zookeeper(home, clientAuth, TestCluster.freePort(), port);
        try {
            Client letIn = client("localhost:" + port);
            letIn.session(); // Which waits until the server is up.
            letIn.close();
            conf.set("fs.bk.tls.certificate", certificate.isEmpty() ? "" : pem(certificate));
            mustRefuse(
                    "ZooKeeper at localhost:" + port + " can't be used: it refuses this client (Received fatal alert: ",
                    () -> client("localhost:" + port).session());
        } finally {
            other.destroyForcibly().waitFor();
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "fs.bk.tls=none | " + TLS_AND_ROLE,
                "fs.bk.tls.certificate=norole | " + TLS_AND_ROLE,
                "fs.bk.tls.certificate= | it refuses this client (",
                "fs.bk.tls.certificate=stranger | it refuses this client (",
            })
    void aBookieThatDoesNotLetInSaysWhy(String option, String said) throws Exception {
        String plain = "localhost:" + plainPort;
        conf.set("fs.bk.tls", "bookies");
        Client owner = client(plain);
        write(owner, "/small", random(10));
        write(owner, "/large", random(3 << 20));
        owner.close();
        var name = option.substring(0, option.indexOf('='));
        var value = option.substring(option.indexOf('=') + 1);
        conf.set(name, value.equals("norole") || value.equals("stranger") ? pem(value) : value);
        Client client = client(plain);
        boolean isByRole = said.equals(TLS_AND_ROLE);
        long withinMs = isByRole ? AT_ONCE_MS : SOON_MS;
        mustRefuse(said, withinMs, () -> write(client, "/small", random(10)));
        mustRefuse(said, withinMs, () -> write(client, "/large", random(3 << 20)));
        mustRefuse(said, withinMs, () -> read(client, "/small"));
        mustRefuse(said, withinMs, () -> read(client, "/large"));
        if (isByRole) {
            assertThrows(AccessControlException.class, () -> read(client, "/small"));
        }
        client.close();
    }

    @Test
    void certificatesThatCantBeUsedWithBookiesAreTold() throws Exception {
        conf.set("fs.bk.tls", "bookies");
        conf.set("fs.bk.tls.certificate", home.resolve("all.p12").toString());
        Client client = client("localhost:" + plainPort);
        mustRefuse("The certificates for bookies can't be used", () -> write(client, "/small", random(10)));
        client.close();
    }

    @Test
    void aBookieWithAnotherCertificateIsNamed() throws Exception {
        bookie.close();
        bookie = TestCluster.start(SecuredServers.bookie(home, plainPort, "elsewhere"));
        try {
            conf.setInt("fs.bk.ensemble", 1); // The bookie that has gone counts as one that may come back.
            Client client = client();
            mustRefuse(
                    "fails: its certificate is for another host", SOON_MS, () -> write(client, "/small", random(10)));
            client.close();
            conf.set("fs.bk.bookkeeper.tlsHostnameVerificationEnabled", "false");
            Client careless = client();
            write(careless, "/small", random(10));
            careless.close();
        } finally {
            bookie.close();
            bookie = TestCluster.start(SecuredServers.bookie(home, plainPort, "bookie"));
        }
    }

    private interface Doing {
        void run() throws Exception;
    }

    /** It fails soon, with these words, and no word of it is a secret. */
    private static void mustRefuse(String said, Doing doing) {
        mustRefuse(said, AT_ONCE_MS, doing);
    }

    private static void mustRefuse(String said, long withinMs, Doing doing) {
        long begun = System.nanoTime();
        var refused = assertThrows(IOException.class, doing::run);
        long took = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begun);
        var all = new StringBuilder();
        for (Throwable e = refused; e != null; e = e.getCause()) {
            all.append(e).append('\n');
        }
        System.out.println("REFUSED after " + took + " ms: " + all);
        assertTrue(all.toString().contains(said), all.toString());
        assertTrue(took < withinMs, took + " ms");
        assertFalse(all.toString().contains("pa55word"), all.toString());
    }

    private interface Looking {
        void at(ZooKeeper zk) throws Exception;
    }

    /** Below the root of a client's tree, by path. */
    private static Map<String, List<ACL>> accessLists(Client owner) throws Exception {
        var lists = new TreeMap<String, List<ACL>>();
        String root = owner.settings.root;
        for (String path : ZKUtil.listSubTreeBFS(owner.session().zk(), root)) {
            lists.put(path.substring(root.length()), owner.session().zk().getACL(path, null));
        }
        return lists;
    }

    /** Through the port without TLS, as nobody. */
    private static void connect(Looking looking) throws Exception {
        var connected = new CountDownLatch(1);
        try (var zk = new ZooKeeper("localhost:" + plainPort, 10_000, event -> connected.countDown())) {
            assertTrue(connected.await(60, TimeUnit.SECONDS));
            looking.at(zk);
        }
    }
}
