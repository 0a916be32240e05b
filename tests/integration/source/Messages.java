import java.io.BufferedWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.client.api.BatcherBuilder;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.TypedMessageBuilder;
import java.util.concurrent.TimeUnit;

/**
 * Writes messages in every combination of what a producer and a message can have, to one topic, and lists them in the
 * topic's order: where each is stored, what was sent, and when, as the client's own reader sees it.
 *
 * <p>Arguments: service URL, topic, number of messages, file of the list.
 */
public final class Messages {
    private static final int CHUNK_BYTES = 1_000;
    private static final int IN_FLIGHT = 2_000;
    private static final String NONE = "-";
    private static final String[] KEYS = {null, "key", "", "base64"};

    private final Map<String, String> sent = new ConcurrentHashMap<>();
    private final Random random = new Random(16);

    private record Writer(Producer<byte[]> producer, boolean chunks) {}

    public static void main(String[] args) throws Exception {
        try (PulsarClient client = PulsarClient.builder().serviceUrl(args[0]).build();
                BufferedWriter list = Files.newBufferedWriter(Path.of(args[3]), StandardCharsets.UTF_8)) {
            Messages messages = new Messages();
            messages.write(client, args[1], Integer.parseInt(args[2]));
            messages.list(client, args[1], list);
        }
        System.exit(0);
    }

    private static List<Writer> writers(PulsarClient client, String topic) throws Exception {
        List<Writer> writers = new ArrayList<>();
        for (CompressionType compression : CompressionType.values()) {
            ProducerBuilder<byte[]> plain = client.newProducer(Schema.BYTES)
                    .topic(topic)
                    .compressionType(compression)
                    .compressionMinMsgBodySize(1) // by default what is below 4 KiB is not compressed
                    .blockIfQueueFull(true)
                    .enableBatching(false);
            ProducerBuilder<byte[]> batched = plain.clone()
                    .enableBatching(true)
                    .batchingMaxMessages(37)
                    .batchingMaxPublishDelay(20, TimeUnit.MILLISECONDS);
            writers.add(new Writer(plain.create(), false));
            writers.add(new Writer(batched.create(), false));
            writers.add(new Writer(batched.clone().batcherBuilder(BatcherBuilder.KEY_BASED).create(), false));
            writers.add(new Writer(
                    plain.clone().enableChunking(true).chunkMaxMessageSize(CHUNK_BYTES).create(), true));
        }
        return writers;
    }

    private void write(PulsarClient client, String topic, int count) throws Exception {
        List<Writer> writers = writers(client, topic);
        Queue<CompletableFuture<?>> receipts = new ArrayDeque<>();
        for (int number = 0; number < count; number++) {
            Writer writer = writers.get(number % writers.size());
            receipts.add(send(writer, number / writers.size()));
            while (receipts.size() > IN_FLIGHT) {
                receipts.remove().get();
            }
        }
        for (Writer writer : writers) {
            writer.producer().flush();
        }
        for (CompletableFuture<?> receipt : receipts) {
            receipt.get();
        }
        for (Writer writer : writers) {
            writer.producer().close();
        }
    }

    /** Send the combination of this number. */
    private CompletableFuture<?> send(Writer writer, int number) {
        String key = KEYS[number % 4];
        boolean ordered = number / 4 % 2 == 1;
        boolean timed = number / 8 % 2 == 1;
        int properties = number / 16 % 3;
        int kind = number / 48 % 4;
        TypedMessageBuilder<byte[]> message = writer.producer().newMessage();
        byte[] keyBytes = bytes(3);
        if ("base64".equals(key)) {
            message.keyBytes(keyBytes);
        } else if (key != null) {
            message.key(key);
            keyBytes = key.getBytes(StandardCharsets.UTF_8);
        }
        byte[] ordering = ordered ? bytes(4) : null;
        if (ordered) {
            message.orderingKey(ordering);
        }
        long time = timed ? 1_357_043_400_250L + number : 0;
        if (timed) {
            message.eventTime(time);
        }
        Map<String, String> named = new TreeMap<>();
        for (int one = 0; one < properties; one++) {
            named.put("имя " + one, one == 0 ? "" : "value " + number);
        }
        message.properties(named);
        byte[] value = value(writer.chunks(), kind);
        message.value(value);
        String line = String.join(
                "\t",
                timed ? Long.toString(time) : NONE,
                key == null ? NONE : hex(keyBytes),
                ordered ? hex(ordering) : NONE,
                named.isEmpty() ? NONE : pairs(named),
                value == null ? NONE : hex(value));
        return message.sendAsync().thenAccept(id -> sent.put(where(id), line));
    }

    /** Null, empty, bytes that look like the headers of messages, or bytes that don't compress. */
    private byte[] value(boolean chunks, int kind) {
        return switch (kind) {
            case 0 -> null;
            case 1 -> new byte[0];
            case 2 -> HexFormat.of().parseHex("0000000a0a036b6579".repeat(chunks ? 400 : 3) + "180a");
            default -> bytes(chunks ? CHUNK_BYTES * 3 + 500 : 40);
        };
    }

    private byte[] bytes(int count) {
        byte[] bytes = new byte[count];
        random.nextBytes(bytes);
        return bytes;
    }

    private void list(PulsarClient client, String topic, BufferedWriter list) throws Exception {
        try (Reader<byte[]> reader = client.newReader(Schema.BYTES)
                .topic(topic)
                .startMessageId(MessageId.earliest)
                .create()) {
            while (reader.hasMessageAvailable()) {
                Message<byte[]> message = reader.readNext();
                String where = where(message.getMessageId());
                String line = sent.remove(where);
                if (line == null) {
                    throw new IllegalStateException("nothing was sent to " + where);
                }
                list.write(where + "\t" + message.getPublishTime() + "\t" + line + "\n");
            }
        }
        if (!sent.isEmpty()) {
            throw new IllegalStateException("the client's reader got nothing of " + sent.keySet());
        }
    }

    private static String where(MessageId id) {
        MessageIdAdv at = (MessageIdAdv) id;
        return at.getLedgerId() + "\t" + at.getEntryId() + "\t" + at.getBatchIndex();
    }

    private static String pairs(Map<String, String> named) {
        List<String> pairs = new ArrayList<>();
        named.forEach((name, value) -> pairs.add(
                hex(name.getBytes(StandardCharsets.UTF_8)) + "=" + hex(value.getBytes(StandardCharsets.UTF_8))));
        return String.join(",", pairs);
    }

    private static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }
}
