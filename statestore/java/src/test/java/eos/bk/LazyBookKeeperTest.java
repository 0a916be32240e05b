package eos.bk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.util.List;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;

/** Names are in ZooKeeper alone: who only looks at them needs no BookKeeper. */
class LazyBookKeeperTest {
    @Test
    void namesAreReadWhereThereIsNoBookKeeper() throws Exception {
        var conf = new Configuration();
        conf.set("fs.bk.root", "/eos-bk-test/" + UUID.randomUUID());
        conf.set("fs.bk.ledgers", "/no-ledgers");
        conf.setInt("fs.bk.maintenance.ms", 0);
        var client = new Client(new Settings(URI.create("bk://" + TestCluster.address()), conf));
        client.names.mkdirs("/d");
        assertEquals(
                List.of("/d"),
                client.names.list("/").stream().map(Names.Status::path).toList());
        var session = client.session();
        var refused = assertThrows(IOException.class, session::bk);
        assertTrue(refused.getMessage().contains("Can't use BookKeeper at"), refused.getMessage());
        client.close();
        assertTrue(assertThrows(IOException.class, session::bk).getMessage().endsWith("is over"));
    }
}
