package eos.bk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.zookeeper.AsyncCallback.MultiCallback;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.ZooKeeper;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Answers of a ZooKeeper that is newer than its client, or has no room or no time for a write. */
@Timeout(60)
class ZkTest {
    private static final int THROTTLED = -127;

    /** Gives one answer to each write, and a good one after so many. */
    private static final class Answering extends ZooKeeper {
        final AtomicInteger asked = new AtomicInteger();
        private final int code;
        private final int times;

        Answering(int code, int times) throws IOException {
            super("localhost:1", 10_000, event -> {});
            this.code = code;
            this.times = times;
        }

        @Override
        public void multi(Iterable<Op> ops, MultiCallback callback, Object context) {
            int rc = asked.incrementAndGet() > times ? Code.OK.intValue() : code;
            callback.processResult(rc, "/n", context, List.of());
        }
    }

    private static boolean write(Answering zookeeper) throws Exception {
        try (zookeeper) {
            var zk = new Zk(() -> zookeeper, new Settings(URI.create("bk://localhost:1"), new Configuration()));
            return zk.write(List.of(Op.delete("/n", -1)), () -> false);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "-999, 'ZooKeeper refused: KeeperErrorCode = -999 for /n, which is newer than this client of ZooKeeper'",
        "-125, 'ZooKeeper refused: KeeperErrorCode = Quota has exceeded for /n. The quota of a znode above it is used up: "
                + "raise it (setquota -N, -B)'",
    })
    void aWriteThatIsRefusedSaysSoWhateverTheCode(int code, String said) throws Exception {
        var zookeeper = new Answering(code, Integer.MAX_VALUE);
        assertEquals(
                said, assertThrows(IOException.class, () -> write(zookeeper)).getMessage());
        assertEquals(1, zookeeper.asked.get());
    }

    @Test
    void aWriteThatAServerHadNoTimeForIsSentAgain() throws Exception {
        var zookeeper = new Answering(THROTTLED, 2);
        assertTrue(write(zookeeper));
        assertEquals(3, zookeeper.asked.get());
    }
}
