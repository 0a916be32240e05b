package eos.bk;

import java.io.IOException;
import java.net.URI;
import java.util.Random;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** A root of its own for each test, with a client, and what tests do with files. */
abstract class OwnRoot {
    static final String TEMPORARY = "/d/.1." + new UUID(1, 2) + ".TID3.tmp";

    Configuration conf;
    Client client;

    @BeforeEach
    void start() throws IOException {
        conf = TestCluster.configure(new Configuration());
        conf.set("fs.bk.root", "/eos-bk-test/" + UUID.randomUUID());
        conf.setInt("fs.bk.maintenance.ms", 0);
        conf.setInt("fs.bk.grace.ms", 0);
        client = new Client(new Settings(URI.create(TestCluster.uri()), conf));
        client.names.mkdirs("/d");
    }

    @AfterEach
    void stop() {
        client.close();
    }

    Client another() throws IOException {
        return new Client(new Settings(URI.create(TestCluster.uri()), conf));
    }

    void write(String path, byte[] data) throws IOException {
        try (var out = new BkOutputStream(client, path, true)) {
            out.write(data, 0, data.length);
        }
    }

    static byte[] read(Client client, String path) throws IOException {
        try (var in = new BkInputStream(client, path, client.names.find(path).file())) {
            return in.readAllBytes();
        }
    }

    static byte[] random(int size) {
        var data = new byte[size];
        new Random(size).nextBytes(data);
        return data;
    }

    long ledgerOf(String path) throws IOException {
        return client.names.find(path).file().ledger();
    }

    boolean isRegistered(long ledger) throws IOException {
        return client.zk.stat(client.names.ledger(ledger)) != null;
    }

    void retirePacks() {
        client.packs.close();
    }
}
