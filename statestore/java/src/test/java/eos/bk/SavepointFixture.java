package eos.bk;

import java.io.IOException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** A tree of each test's own with a checkpoint at /q, and its savepoints. */
abstract class SavepointFixture {
    final TestTree tree = new TestTree(Settings.MIB);
    final Client client = tree.survivor;
    final Savepoints all = new Savepoints(client, 200);

    @BeforeEach
    void start() throws IOException {
        SavepointsTest.checkpoint(client);
    }

    @AfterEach
    void stop() {
        tree.close();
    }
}
