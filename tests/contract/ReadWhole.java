import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;

/**
 * Reads topics to their end with the Java client. For each line "TOPIC FILE" on its input it writes the messages to the
 * file, one a line: key, ordering key, event time, properties, and the size and SHA-256 of the value, "-" for none.
 * "TOPIC FILE COUNT" reads so many by a consumer with receiverQueueSize=0; where none comes for 20 s, those before it.
 *
 * <p>Arguments: service URL.
 */
public final class ReadWhole {
    private static final String NONE = "-";

    public static void main(String[] args) throws Exception {
        try (PulsarClient client = PulsarClient.builder().serviceUrl(args[0]).build();
                BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String order = orders.readLine(); order != null; order = orders.readLine()) {
                String[] words = order.split(" ");
                Path file = Path.of(words[1]);
                int count = words.length == 2
                        ? read(client, words[0], file)
                        : receive(client, words[0], file, Integer.parseInt(words[2]));
                System.out.println("read " + count);
                System.out.flush();
            }
        }
        System.exit(0);
    }

    private static int read(PulsarClient client, String topic, Path file) throws Exception {
        int count = 0;
        try (Reader<byte[]> reader = client.newReader(Schema.BYTES)
                        .topic(topic)
                        .startMessageId(MessageId.earliest)
                        .create();
                BufferedWriter list = Files.newBufferedWriter(file, StandardCharsets.UTF_8)) {
            while (reader.hasMessageAvailable()) {
                Message<byte[]> message = reader.readNext(60, TimeUnit.SECONDS);
                if (message == null) {
                    throw new IllegalStateException("the client promised a message, and it does not come");
                }
                list.write(line(message));
                count++;
            }
        }
        return count;
    }

    private static int receive(PulsarClient client, String topic, Path file, int most) throws Exception {
        int count = 0;
        try (Consumer<byte[]> consumer = client.newConsumer(Schema.BYTES)
                        .topic(topic)
                        .subscriptionName("no-queue")
                        .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                        .receiverQueueSize(0)
                        .subscribe();
                BufferedWriter list = Files.newBufferedWriter(file, StandardCharsets.UTF_8)) {
            while (count < most) {
                Message<byte[]> message = consumer.receiveAsync().get(20, TimeUnit.SECONDS);
                list.write(line(message));
                consumer.acknowledge(message);
                count++;
            }
        } catch (ExecutionException | TimeoutException closed) {
            System.err.println(closed);
        }
        return count;
    }

    private static String line(Message<byte[]> message) throws Exception {
        byte[] value = message.getValue();
        return String.join(
                "\t",
                message.hasKey() ? HexFormat.of().formatHex(message.getKeyBytes()) : NONE,
                message.hasOrderingKey() ? HexFormat.of().formatHex(message.getOrderingKey()) : NONE,
                Long.toString(message.getEventTime()),
                pairs(message.getProperties()),
                value == null ? NONE : value.length + " " + HexFormat.of().formatHex(sha256(value)))
                + "\n";
    }

    private static byte[] sha256(byte[] value) throws Exception {
        return MessageDigest.getInstance("SHA-256").digest(value);
    }

    private static String pairs(Map<String, String> properties) {
        StringBuilder pairs = new StringBuilder();
        new TreeMap<>(properties).forEach((name, value) -> pairs.append(name).append('=').append(value).append(','));
        return pairs.toString();
    }
}
