package eos.bk;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.UUID;
import java.util.regex.Pattern;
import org.apache.bookkeeper.util.ZkUtils;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The root of a tree. Its znode holds its identity, a UUID and the path of its BookKeeper in ZooKeeper: a client of
 * another BookKeeper would take each of its ledgers for lost. One that was made before that holds the UUID alone.
 */
final class Root {
    private static final Logger LOG = LoggerFactory.getLogger(Root.class);
    private static final Pattern IDENTITY = Pattern.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(?: (/.+))?");

    private Root() {}

    /** Whether no other tree has the same. */
    static boolean isUnique(String identity) {
        return IDENTITY.matcher(identity).matches();
    }

    /** Makes the root's znodes where they are missing, and returns its identity, which each ledger carries. */
    static String prepare(ZooKeeper zk, Settings settings) throws KeeperException, InterruptedException, Failed {
        if (!settings.makeRoot && zk.exists(settings.root + "/n", false) == null) {
            throw new Failed(
                    Failed.Kind.InvalidInput,
                    "ZooKeeper " + settings.zkServers + " has no files of bk:// under " + settings.root
                            + ": nothing was written yet, or fs.bk.root is another");
        }
        var made = UUID.randomUUID() + " " + settings.ledgersPath;
        createMissing(zk, settings, "", made.getBytes(StandardCharsets.UTF_8));
        var identity = identity(zk, settings, made);
        mustBeOfTheBookKeeper(identity, settings);
        for (String room : new String[] {"/L/empty", "/w", "/del", "/sp"}) {
            createMissing(zk, settings, room, Names.NOTHING);
        }
        try {
            if (zk.exists(settings.root + "/n", false) == null) {
                zk.multi(List.of(
                        Op.create(settings.root + "/n", Names.NOTHING, settings.acl, CreateMode.PERSISTENT),
                        Op.setData(settings.root + "/n", Names.NOTHING, 0)));
            }
        } catch (KeeperException.NodeExistsException e) {
            LOG.debug("The root is there");
        }
        return identity;
    }

    /**
     * What the root's znode says. One that is empty, as above the root of another tree, or has a text of an operator's,
     * who made it to set a quota, gets what was made here, unless there is a tree: its ledgers carry that text.
     */
    private static String identity(ZooKeeper zk, Settings settings, String made)
            throws KeeperException, InterruptedException {
        while (true) {
            var stat = new Stat();
            byte[] data = zk.getData(settings.root, false, stat);
            var identity = data == null ? "" : new String(data, StandardCharsets.UTF_8);
            if (isUnique(identity) || zk.exists(settings.root + "/n", false) != null) {
                return identity;
            }
            try {
                zk.setData(settings.root, made.getBytes(StandardCharsets.UTF_8), stat.getVersion());
            } catch (KeeperException.BadVersionException e) {
                LOG.debug("Another process made the identity of {} meanwhile", settings.root);
            } catch (KeeperException.NoAuthException e) {
                // Who may make znodes under it need not be allowed to write it. The sweeper does without an identity.
                return identity;
            }
        }
    }

    private static void mustBeOfTheBookKeeper(String identity, Settings settings) throws Failed {
        var words = IDENTITY.matcher(identity);
        String path = words.matches() ? words.group(2) : null;
        if (path != null && !path.equals(settings.ledgersPath)) {
            throw new Failed(
                    Failed.Kind.InvalidInput,
                    "The files under " + settings.root + " in ZooKeeper " + settings.zkServers
                            + " are in ledgers of the BookKeeper at " + path
                            + ", and this client is told of the one at "
                            + settings.ledgersPath + ". Set fs.bk.ledgers, or the path at the end of "
                            + "fs.bk.NAME.metadata-service-uri, to " + path + ", or fs.bk.root to a tree of its own");
        }
    }

    private static void createMissing(ZooKeeper zk, Settings settings, String room, byte[] data)
            throws KeeperException, InterruptedException {
        try {
            // Asked first: who may use a root that is there need not be allowed to make one.
            if (zk.exists(settings.root + room, false) == null) {
                ZkUtils.createFullPathOptimistic(zk, settings.root + room, data, settings.acl, CreateMode.PERSISTENT);
            }
        } catch (KeeperException.NodeExistsException e) {
            LOG.debug("Another process made {}{} meanwhile", settings.root, room);
        }
    }
}
