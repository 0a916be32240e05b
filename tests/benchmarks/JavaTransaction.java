import java.io.BufferedInputStream;
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SizeUnit;
import org.apache.pulsar.client.api.transaction.Transaction;

/**
 * The official Java client, kept warm in one process and told what to do by lines on standard input.
 *
 * <pre>
 *   load FILE     read the rows into memory                            → loaded ROWS
 *   run TOPIC     write them all in one transaction and commit it      → committed ROWS
 * </pre>
 *
 * It ends with its input. The arguments: the service URL, and the number of sending threads.
 */
public final class JavaTransaction {
    private static final int LARGEST_BATCH_MESSAGES = 10_000;
    private static final int LARGEST_BATCH_BYTES = 1024 * 1024;
    private static final int PENDING_MESSAGES = 50_000;

    private final PulsarClient client;
    private final int threads;
    private final Map<String, Producer<byte[]>> producers = new HashMap<>();
    private String[] keys = {};
    private byte[][] values = {};

    private JavaTransaction(String serviceUrl, int threads) throws Exception {
        this.threads = threads;
        client = PulsarClient.builder()
                .serviceUrl(serviceUrl)
                .enableTransaction(true)
                .ioThreads(threads)
                .memoryLimit(256, SizeUnit.MEGA_BYTES)
                .build();
    }

    public static void main(String[] args) throws Exception {
        JavaTransaction peer = new JavaTransaction(args[0], Integer.parseInt(args[1]));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", 2);
            if (words[0].equals("load")) {
                peer.load(Path.of(words[1]));
                System.out.println("loaded " + peer.values.length);
            } else {
                peer.run(words[1]);
                System.out.println("committed " + peer.values.length);
            }
            System.out.flush();
        }
        peer.client.close();
    }

    /** A file of rows: their number, then for each the key's length and bytes, the value's length and bytes. */
    private void load(Path file) throws IOException {
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(Files.newInputStream(file), 1 << 20))) {
            int rows = in.readInt();
            keys = new String[rows];
            values = new byte[rows][];
            for (int row = 0; row < rows; row++) {
                keys[row] = new String(in.readNBytes(in.readInt()), StandardCharsets.UTF_8);
                values[row] = in.readNBytes(in.readInt());
            }
        }
    }

    private void run(String topic) throws Exception {
        Producer<byte[]> producer = producer(topic);
        Transaction transaction =
                client.newTransaction().withTransactionTimeout(10, TimeUnit.MINUTES).build().get();
        List<Thread> senders = new ArrayList<>();
        int share = (values.length + threads - 1) / threads;
        for (int first = 0; first < values.length; first += share) {
            int from = first;
            int to = Math.min(values.length, first + share);
            Thread sender = new Thread(() -> send(producer, transaction, from, to));
            sender.start();
            senders.add(sender);
        }
        for (Thread sender : senders) {
            sender.join();
        }
        producer.flush();
        transaction.commit().get(); // waits for every send, and fails when one has failed
    }

    private void send(Producer<byte[]> producer, Transaction transaction, int from, int to) {
        for (int row = from; row < to; row++) {
            producer.newMessage(transaction).key(keys[row]).value(values[row]).sendAsync();
        }
    }

    private Producer<byte[]> producer(String topic) throws Exception {
        Producer<byte[]> producer = producers.get(topic);
        if (producer == null) {
            producer = client.newProducer(Schema.BYTES)
                    .topic(topic)
                    .sendTimeout(0, TimeUnit.SECONDS) // transactions ask for it
                    .enableBatching(true)
                    .batchingMaxMessages(LARGEST_BATCH_MESSAGES)
                    .batchingMaxBytes(LARGEST_BATCH_BYTES)
                    .batchingMaxPublishDelay(10, TimeUnit.MILLISECONDS)
                    .maxPendingMessages(PENDING_MESSAGES)
                    .blockIfQueueFull(true)
                    .create();
            producers.put(topic, producer);
        }
        return producer;
    }
}
