package eos.bk;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.tls.BookieAuthZFactory;
import org.apache.bookkeeper.tls.TLSContextFactory;
import org.apache.zookeeper.server.ZooKeeperServerMain;

/** Servers that demand TLS and more, with the certificates of a folder. */
final class SecuredServers {
    private SecuredServers() {}

    /** {@code clientAuth}: whether it wants certificates of clients, or needs them. */
    static Process zookeeper(Path home, String clientAuth, int plainPort, int tlsPort) throws IOException {
        Path folder = Files.createDirectories(home.resolve("zookeeper-" + tlsPort));
        Path zoo = Files.writeString(
                folder.resolve("zoo.cfg"),
                "dataDir=" + folder + "/data\nclientPort=" + plainPort + "\nsecureClientPort=" + tlsPort
                        + "\nadmin.enableServer=false\nssl.clientAuth=" + clientAuth + "\n"
                        + "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"
                        + "clientPortAddress=127.0.0.1\nsecureClientPortAddress=127.0.0.1\n"
                        + "ssl.keyStore.location=" + home.resolve("server.pem") + "\nssl.trustStore.location="
                        + home.resolve("authority.pem")
                        + "\n");
        return TestTree.jvm(folder.resolve("log"), ZooKeeperServerMain.class, zoo.toString());
    }

    static ServerConfiguration bookie(Path home, int zookeeperPort, String name) throws IOException {
        String certificate = home.resolve(name + ".pem").toString();
        var conf =
                TestCluster.bookie(zookeeperPort, TestCluster.freePort(), home.resolve("bookie-" + UUID.randomUUID()));
        conf.setTLSProvider("JDK");
        conf.setTLSProviderFactoryClass(TLSContextFactory.class.getName());
        conf.setTLSKeyStoreType("PEM");
        conf.setTLSKeyStore(certificate);
        conf.setTLSCertificatePath(certificate);
        conf.setTLSTrustStoreType("PEM");
        conf.setTLSTrustStore(home.resolve("authority.pem").toString());
        conf.setTLSClientAuthentication(true);
        conf.setBookieAuthProviderFactoryClass(BookieAuthZFactory.class.getName());
        conf.setAuthorizedRoles("eos");
        return conf;
    }
}
