import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.CryptoKeyReader;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.impl.DefaultCryptoKeyReader;

/**
 * Reads and writes messages that are encrypted end to end, as any user of the Java client would.
 *
 * <p>Argument: service URL. Each line of standard input is JSON: `do`, `topic`, `keys` (the files of keys by their
 * names), and to read, the number of messages; to write, `values`, `batched`, `chunked`, `compression`. The answer is
 * "done" and a JSON list of [key, value]: what a new subscription gets, and nothing more comes.
 */
public final class EncryptedMessages {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int QUIET_MS = 500;
    private static final int PATIENCE_S = 60;
    private static final int CHUNK_BYTES = 1_000;

    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build()) {
            for (String line; (line = lines.readLine()) != null; ) {
                JsonNode asked = JSON.readTree(line);
                var answer = asked.get("do").asText().equals("read") ? read(client, asked) : write(client, asked);
                System.out.println("done " + JSON.writeValueAsString(answer));
            }
        }
        System.exit(0);
    }

    private static List<List<String>> read(PulsarClient client, JsonNode asked) throws Exception {
        List<List<String>> found = new ArrayList<>();
        try (Consumer<byte[]> consumer = client.newConsumer(Schema.BYTES)
                .topic(asked.get("topic").asText())
                .subscriptionName(UUID.randomUUID().toString())
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                .cryptoKeyReader(keys(asked))
                .subscribe()) {
            int wanted = asked.get("count").asInt();
            for (Message<byte[]> one; ; ) {
                boolean more = found.size() < wanted;
                one = consumer.receive(more ? PATIENCE_S * 1_000 : QUIET_MS, TimeUnit.MILLISECONDS);
                if (one == null) {
                    return found;
                }
                found.add(Arrays.asList(one.getKey(), new String(one.getValue(), StandardCharsets.UTF_8)));
            }
        }
    }

    private static List<List<String>> write(PulsarClient client, JsonNode asked) throws Exception {
        ProducerBuilder<byte[]> builder = client.newProducer(Schema.BYTES)
                .topic(asked.get("topic").asText())
                .cryptoKeyReader(keys(asked))
                .compressionType(CompressionType.valueOf(asked.get("compression").asText()))
                .enableBatching(asked.get("batched").asBoolean())
                .batchingMaxPublishDelay(100, TimeUnit.MILLISECONDS);
        if (asked.get("chunked").asBoolean()) {
            builder.enableChunking(true).chunkMaxMessageSize(CHUNK_BYTES);
        }
        asked.get("keys").fieldNames().forEachRemaining(builder::addEncryptionKey);
        List<CompletableFuture<?>> receipts = new ArrayList<>();
        try (var producer = builder.create()) {
            for (JsonNode value : asked.get("values")) {
                receipts.add(producer.newMessage().key("key of " + value.asText().length())
                        .value(value.asText().getBytes(StandardCharsets.UTF_8)).sendAsync());
            }
            producer.flush();
            for (var receipt : receipts) {
                receipt.get(PATIENCE_S, TimeUnit.SECONDS);
            }
        }
        return List.of();
    }

    private static CryptoKeyReader keys(JsonNode asked) {
        Map<String, String> files = new HashMap<>();
        asked.get("keys").properties().forEach(one -> files.put(one.getKey(), "file://" + one.getValue().asText()));
        return DefaultCryptoKeyReader.builder().publicKeys(files).privateKeys(files).build();
    }
}
