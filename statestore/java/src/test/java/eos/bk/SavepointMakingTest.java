package eos.bk;

import static eos.bk.SavepointsTest.checkpoint;
import static eos.bk.SavepointsTest.create;
import static eos.bk.SavepointsTest.states;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.Op;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The order in which savepoints were made. */
class SavepointMakingTest {
    private final TestTree tree = new TestTree(Settings.MIB);
    private final Client client = tree.survivor;
    private final Savepoints all = new Savepoints(client, 200);

    @BeforeEach
    void start() throws IOException {
        checkpoint(client);
    }

    @AfterEach
    void stop() {
        tree.close();
    }

    @Test
    void theyAreInTheOrderOfTheirMakingWhateverTheClocksOfTheirMakersSay() throws IOException {
        Savepoint ahead = create(all, "z");
        var record = Json.MAPPER.readTree(ahead.encode());
        long tomorrow = ahead.createdMs() + TimeUnit.DAYS.toMillis(1);
        ((ObjectNode) record).put("created_ms", tomorrow);
        byte[] said = Json.write(record).getBytes(StandardCharsets.UTF_8);
        assertTrue(client.zk.write(List.of(Op.setData(all.path("z"), said, -1)), () -> true));
        create(all, "m");
        create(all, "a");
        assertEquals(tomorrow, all.read("z").savepoint().createdMs());
        assertEquals(List.of("z ready", "m ready", "a ready"), states(all));
    }
}
