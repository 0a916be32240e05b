import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;

/**
 * Fills topics with rows in entries of a chosen number of messages, by the official client.
 *
 * <pre>
 *   fill TOPIC MESSAGES ROWS    so many rows with a key into a physical topic    → filled ROWS
 * </pre>
 *
 * It ends with its input. The arguments: the service URL, bytes of a value, and how many different keys.
 */
public final class FillTopic {
    private static final int PENDING_MESSAGES = 50_000;
    private static final int LARGEST_BATCH_BYTES = 4 * 1024 * 1024;

    public static void main(String[] args) throws Exception {
        byte[] value = new byte[Integer.parseInt(args[1])];
        int keys = Integer.parseInt(args[2]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (PulsarClient client =
                PulsarClient.builder().serviceUrl(args[0]).ioThreads(2).build()) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] words = line.split(" ");
                int rows = Integer.parseInt(words[3]);
                fill(client, words[1], Integer.parseInt(words[2]), rows, value, keys);
                System.out.println("filled " + rows);
                System.out.flush();
            }
        }
    }

    private static void fill(PulsarClient client, String topic, int messages, int rows, byte[] value, int keys)
            throws Exception {
        Random random = new Random(rows);
        try (Producer<byte[]> producer = client.newProducer()
                .topic(topic)
                .batchingMaxMessages(messages)
                .batchingMaxBytes(LARGEST_BATCH_BYTES)
                .batchingMaxPublishDelay(1, TimeUnit.HOURS) // an entry ends when it is full
                .maxPendingMessages(PENDING_MESSAGES)
                .blockIfQueueFull(true)
                .create()) {
            for (int row = 0; row < rows; row++) {
                random.nextBytes(value);
                producer.newMessage()
                        .key("key-" + row % keys)
                        .value(Arrays.copyOf(value, value.length))
                        .sendAsync();
            }
            producer.flush();
        }
    }
}
