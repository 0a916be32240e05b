package eos.bk;

import eos.bk.Failed.Kind;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import javax.net.ssl.SSLException;
import org.apache.bookkeeper.conf.ClientConfiguration;
import org.apache.hadoop.conf.Configuration;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.client.ZKClientConfig;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;

/**
 * Who this client is to ZooKeeper and the bookies, whom it trusts, and whose what it makes is: the options {@code
 * fs.bk.zookeeper-…} and {@code fs.bk.tls…}. No message holds more of a secret than the user's name.
 */
final class Security {
    private static final String P = "fs.bk.";
    private static final String AUTH = P + "zookeeper-auth";
    private static final String ACCESS = P + "zookeeper-acl";
    private static final String READERS = P + "zookeeper-readers";
    private static final String TLS = P + "tls";
    static final String TRUST_CERTS = P + "tls.trust-certs";
    static final String CERTIFICATE = P + "tls.certificate";
    private static final String FILE = "file:";
    /** A secret in place of the path of its file, as {@code is_no_path} of Python knows it. */
    private static final Pattern NO_PATH = Pattern.compile("^\\s*(-----BEGIN|\\{|(?i:data:))|[\n\r\0]");

    private static final String DIGEST = "digest";
    private static final Set<String> ACCESSES = Set.of("", "creator", "open");
    private static final Set<String> PEERS = Set.of("none", "zookeeper", "bookies", "all");

    final List<ACL> acl;
    private final String scheme;
    private final String shown;
    private final String peers;
    private final String trustCerts;
    private final String certificate;

    Security(Configuration conf) throws IOException {
        String auth = secret(conf, AUTH);
        int colon = auth.indexOf(':');
        if (!auth.isEmpty() && (colon < 1 || auth.startsWith(DIGEST + ":") && auth.indexOf(':', colon + 1) < 0)) {
            throw invalid(AUTH + " is not of the form digest:user:password, nor is it file:PATH of that");
        }
        scheme = auth.substring(0, Math.max(colon, 0));
        shown = auth.substring(colon + 1);
        acl = accessList(conf);
        peers = conf.getTrimmed(TLS, "none");
        if (!PEERS.contains(peers)) {
            throw invalid(TLS + " is " + peers + "; expected: none, zookeeper, bookies or all");
        }
        trustCerts = conf.getTrimmed(TRUST_CERTS, "");
        certificate = conf.getTrimmed(CERTIFICATE, "");
        if (!peers.equals("none")) {
            if (trustCerts.isEmpty()) {
                throw invalid(TLS + " is " + peers + ", and " + TRUST_CERTS
                        + " is not set: a PEM file of the authorities that signed the servers' certificates");
            }
            mustBeReadable(TRUST_CERTS, trustCerts);
            if (!certificate.isEmpty()) {
                mustBeReadable(CERTIFICATE, certificate);
            }
        }
    }

    private List<ACL> accessList(Configuration conf) throws IOException {
        String access = conf.getTrimmed(ACCESS, "");
        if (!ACCESSES.contains(access)) {
            throw invalid(ACCESS + " is " + access + "; expected: creator or open");
        }
        boolean creator = access.isEmpty() ? !scheme.isEmpty() : access.equals("creator");
        var readers = conf.getTrimmedStringCollection(READERS);
        if (!creator) {
            if (!readers.isEmpty()) {
                throw invalid(READERS + " names who may read, and all may do all: set " + AUTH);
            }
            return ZooDefs.Ids.OPEN_ACL_UNSAFE;
        }
        var list = new ArrayList<>(ZooDefs.Ids.CREATOR_ALL_ACL);
        for (String reader : readers) {
            int colon = reader.indexOf(':');
            if (colon < 1 || colon == reader.length() - 1) {
                throw invalid(READERS + " is not a list of digest:user:hash, separated by commas");
            }
            list.add(new ACL(ZooDefs.Perms.READ, new Id(reader.substring(0, colon), reader.substring(colon + 1))));
        }
        return List.copyOf(list);
    }

    /** A secret, which a credential provider may hold, or a file: {@code file:PATH}. */
    static String secret(Configuration conf, String name) throws IOException {
        char[] value = conf.getPassword(name);
        String text = value == null ? "" : new String(value).trim();
        if (!text.startsWith(FILE)) {
            return text;
        }
        mustBeReadable(name, text.substring(FILE.length()));
        Path file = Path.of(text.substring(FILE.length()));
        String held = Files.readString(file, StandardCharsets.UTF_8).trim();
        if (held.isEmpty()) {
            throw invalid(name + " is in " + file + ", and that file is empty");
        }
        return held;
    }

    private static void mustBeReadable(String name, String file) throws Failed {
        if (NO_PATH.matcher(file).find()) {
            throw invalid(name + " must name a file. It is a text such as the content of one, which is not shown here");
        }
        if (!Files.isRegularFile(Path.of(file)) || !Files.isReadable(Path.of(file))) {
            throw invalid(name + " names " + file + ", which is no file that this process can read; "
                    + "it must be on the machines of driver and executors");
        }
    }

    private static Failed invalid(String message) {
        return new Failed(Kind.InvalidInput, message);
    }

    /** Who this client is, as far as it may be told. */
    String principal() {
        if (scheme.isEmpty()) {
            return "nobody, by " + AUTH;
        }
        String user = scheme.equals(DIGEST) ? " user " + shown.substring(0, shown.indexOf(':')) : " scheme";
        return "the " + scheme + user + ", by " + AUTH;
    }

    /** Shows ZooKeeper who we are. It believes whatever is shown: only access tells right from wrong. */
    void introduce(ZooKeeper zk) {
        if (!scheme.isEmpty()) {
            zk.addAuthInfo(scheme, shown.getBytes(StandardCharsets.UTF_8));
        }
    }

    void configure(ZKClientConfig config) {
        if (!peers.equals("zookeeper") && !peers.equals("all")) {
            return;
        }
        config.setProperty(ZKClientConfig.SECURE_CLIENT, "true");
        config.setProperty(ZKClientConfig.ZOOKEEPER_CLIENT_CNXN_SOCKET, "org.apache.zookeeper.ClientCnxnSocketNetty");
        config.setProperty("zookeeper.ssl.trustStore.location", trustCerts);
        config.setProperty("zookeeper.ssl.trustStore.type", "PEM");
        if (!certificate.isEmpty()) {
            config.setProperty("zookeeper.ssl.keyStore.location", certificate);
            config.setProperty("zookeeper.ssl.keyStore.type", "PEM");
        }
    }

    void configure(ClientConfiguration conf) throws Failed {
        if (!peers.equals("bookies") && !peers.equals("all")) {
            return;
        }
        conf.setTLSProviderFactoryClass(BookieTls.class.getName());
        conf.setTLSTrustStore(trustCerts);
        conf.setHostnameVerificationEnabled(true);
        if (!certificate.isEmpty()) {
            conf.setTLSClientAuthentication(true);
            conf.setTLSKeyStore(certificate);
            conf.setTLSCertificatePath(certificate);
        }
        try {
            BookieTls.context(conf);
        } catch (SSLException | IllegalArgumentException e) {
            throw unusable("bookies", e);
        }
    }

    /** What is wrong with certificates that are there. */
    static Failed unusable(String peers, Exception e) {
        return invalid("The certificates for " + peers + " can't be used: " + Handshake.innermost(e) + ". Check "
                + TRUST_CERTS + " and " + CERTIFICATE
                + ", which holds a chain of certificates and their key in PKCS#8, both PEM");
    }
}
