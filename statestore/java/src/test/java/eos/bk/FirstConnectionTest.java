package eos.bk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** An address at which no ZooKeeper can be: a tool is told soon, a job waits. */
@Timeout(120)
class FirstConnectionTest {
    private static final long HOPELESS_MS = 500;
    private static final long SOON_MS = 20_000;

    private static Client client(String address, int patienceMs) throws IOException {
        var conf = new Configuration();
        conf.setInt("fs.bk.patience.ms", patienceMs);
        return new Client(new Settings(URI.create("bk://" + address), conf));
    }

    private static long failsAfter(Executable call, String said) {
        long begun = System.nanoTime();
        assertEquals(said, assertThrows(IOException.class, call).getMessage());
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begun);
    }

    @ParameterizedTest
    @CsvSource({
        "localhost:1, 'is it running, is it that port?'",
        "nobody.invalid:2181, no address is known here for nobody.invalid",
    })
    void aToolIsToldSoon(String address, String advice) throws IOException {
        var client = client(address, 3_600_000);
        long tookMs =
                failsAfter(() -> client.connect(HOPELESS_MS), "No ZooKeeper answers at " + address + ": " + advice);
        assertTrue(tookMs < SOON_MS, tookMs + " ms");
        client.close();
    }

    @Test
    void aJobWaitsForItsPatience() throws IOException {
        var client = client("localhost:1", 3_000);
        long tookMs =
                failsAfter(client::session, "No ZooKeeper answers at localhost:1: is it running, is it that port?");
        assertTrue(tookMs >= 3_000, tookMs + " ms");
        client.close();
    }

    /** Its command has begun, and mustn't be lost to a server that is started again. */
    @Test
    void whoWasConnectedWaitsToo() throws Exception {
        var proxy = new ZkProxy(TestCluster.address());
        var client = client(proxy.address(), 3_000);
        client.connect(HOPELESS_MS);
        client.session().end();
        proxy.close();
        long begun = System.nanoTime();
        assertThrows(IOException.class, client::session);
        long tookMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begun);
        assertTrue(tookMs >= 3_000, tookMs + " ms");
        client.close();
    }
}
