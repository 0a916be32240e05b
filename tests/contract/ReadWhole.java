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
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;

/**
 * Reads topics to their end with the Java client. For each line "TOPIC FILE" on its input it writes the messages to the
 * file, one a line: key, ordering key, event time, properties, and the size and SHA-256 of the value, "-" for none.
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
                System.out.println("read " + read(client, words[0], Path.of(words[1])));
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
