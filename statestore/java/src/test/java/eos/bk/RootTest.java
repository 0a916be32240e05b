package eos.bk;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.data.ACL;
import org.junit.jupiter.api.Test;

/** The identity of a tree, and the BookKeeper that it names. */
class RootTest extends OwnRoot {
    @Test
    void anotherBookKeeperOfTheSameZooKeeperIsRefused() throws IOException {
        write("/d/f", random(10));
        conf.set("fs.bk.ledgers", "/others/ledgers");
        var refused = assertThrows(Failed.class, () -> another().session());
        assertEquals("InvalidInput", refused.kind());
        assertTrue(
                refused.getMessage()
                        .contains("the BookKeeper at /ledgers, and this client is told of the one at "
                                + "/others/ledgers. Set fs.bk.ledgers"),
                refused.getMessage());
    }

    /** One that was made before its root named the BookKeeper. */
    @Test
    void aTreeThatDoesNotNameItsBookKeeperIsTakenAsItIs() throws Exception {
        String root = conf.get("fs.bk.root");
        var id = new String(client.zk.node(root).data(), StandardCharsets.UTF_8).split(" ");
        assertEquals("/ledgers", id[1]);
        client.session().zk().setData(root, id[0].getBytes(StandardCharsets.UTF_8), -1);
        var other = another();
        assertEquals(id[0], other.session().rootId());
        other.close();
    }

    /** An operator makes the znode first, to set its quota or ACL; that above another tree's root is empty, too. */
    @Test
    void aRootThatAnOperatorMadeGetsAnIdentityOfItsOwn() throws Exception {
        var ids = new HashSet<String>();
        for (String text : List.of("", "", "of our team", "of our team")) {
            conf.set("fs.bk.root", "/eos-bk-test/" + UUID.randomUUID());
            client.session()
                    .zk()
                    .create(
                            conf.get("fs.bk.root"),
                            text.getBytes(StandardCharsets.UTF_8),
                            ZooDefs.Ids.OPEN_ACL_UNSAFE,
                            CreateMode.PERSISTENT);
            var other = another();
            ids.add(other.session().rootId());
            other.close();
        }
        assertEquals(4, ids.size(), "a sweeper takes each unregistered ledger with its identity for its own");
        assertTrue(ids.stream().allMatch(id -> id.endsWith(" /ledgers")), ids.toString());
    }

    @Test
    void aRootThatOnlyItsOperatorMayWriteIsUsedAsItIs() throws Exception {
        conf.set("fs.bk.root", "/eos-bk-test/" + UUID.randomUUID());
        int others = ZooDefs.Perms.READ | ZooDefs.Perms.CREATE | ZooDefs.Perms.DELETE;
        client.session()
                .zk()
                .create(
                        conf.get("fs.bk.root"),
                        new byte[0],
                        new ArrayList<>(List.of(new ACL(others, ZooDefs.Ids.ANYONE_ID_UNSAFE))),
                        CreateMode.PERSISTENT);
        var other = another();
        other.names.mkdirs("/d");
        assertEquals("", other.session().rootId());
        other.close();
    }

    /** Two that were made so before: the sweeper of one deleted the ledgers of the other, whose files were lost. */
    @Test
    void aTreeWithoutAnIdentityLeavesUnregisteredLedgersAlone() throws Exception {
        var roots = List.of(conf.get("fs.bk.root"), "/eos-bk-test/" + UUID.randomUUID());
        var clients = new ArrayList<Client>();
        for (String root : roots) {
            conf.set("fs.bk.root", root);
            var first = another();
            first.session().zk().setData(root, new byte[0], -1);
            first.close();
            clients.add(another());
        }
        clients.get(0).names.mkdirs("/d");
        TestTree.write(clients.get(0), "/d/f", random(10));
        var left = new TreeMap<String, String>();
        assertEquals(List.of(), clients.get(1).sweeper.sweep(true, left));
        assertTrue(left.containsKey("unregistered ledgers"), left.toString());
        assertArrayEquals(random(10), read(clients.get(0), "/d/f"));
        clients.forEach(Client::close);
    }
}
