import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.transaction.Transaction;
import org.apache.pulsar.client.api.transaction.TransactionCoordinatorClientException.InvalidTxnStatusException;
import org.apache.pulsar.client.api.transaction.TransactionCoordinatorClientException.TransactionNotFoundException;

/**
 * The writer of a drill that uses transactions: the official Java client. A block of rows is a transaction; one in four
 * is aborted.
 *
 * <p>Arguments: service URL, topic, rows of the backlog, rows a second after it. It obeys <code>pause</code> and
 * <code>resume</code> on standard input, ends with it, and says what became of each block before it begins the next:
 *
 * <pre>
 *   committed FIRST END       the commit was answered
 *   aborted FIRST END         it never asked for a commit
 *   in-doubt FIRST END        it asked for a commit, and the answer was lost; the transaction has ended all the same
 *   paused                    no transaction is open
 * </pre>
 */
public final class Transactions {
    private static final int BLOCK = 500;
    private static final int KEYS = 16;
    private static final int ABORTED_OF = 4;
    private static final String PAD = ".".repeat(64);
    private static final int TTL_S = 20;
    private static final int RECEIPTS_S = 25;
    private static final int ENDING_S = 90;
    private static final int LEAVE_S = 120;
    private static final long PAUSE_MS = 300;

    private static final PrintStream WORDS = System.out;

    private final PulsarClient client;
    private final Producer<byte[]> producer;
    private volatile boolean paused;
    private volatile boolean ended;

    private Transactions(String serviceUrl, String topic) throws Exception {
        client = PulsarClient.builder()
                .serviceUrl(serviceUrl)
                .enableTransaction(true)
                .operationTimeout(10, TimeUnit.SECONDS)
                .build();
        producer = client.newProducer(Schema.BYTES)
                .topic(topic)
                .sendTimeout(0, TimeUnit.SECONDS) // transactions ask for it
                .batchingMaxPublishDelay(5, TimeUnit.MILLISECONDS)
                .blockIfQueueFull(true)
                .create();
    }

    public static void main(String[] args) throws Exception {
        System.setOut(System.err); // where the client's log goes, so that no word stands in the middle of it
        Transactions writer = new Transactions(args[0], args[1]);
        Thread orders = new Thread(writer::listen, "orders");
        orders.setDaemon(true);
        orders.start();
        writer.write(Integer.parseInt(args[2]), Integer.parseInt(args[3]));
        System.exit(0); // what is left of the client has nothing to tell
    }

    private void listen() {
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                paused = line.equals("pause");
            }
        } catch (IOException error) {
            System.err.println(error);
        }
        ended = true;
        try {
            Thread.sleep(TimeUnit.SECONDS.toMillis(LEAVE_S));
        } catch (InterruptedException error) {
            System.err.println(error);
        }
        Runtime.getRuntime().halt(1); // the brokers are gone, and so is who has started this
    }

    private void write(int backlog, int rate) throws InterruptedException {
        long due = System.nanoTime();
        for (int block = 0; !ended; block++) {
            if (paused) {
                say("paused");
                while (paused && !ended) {
                    Thread.sleep(PAUSE_MS);
                }
                due = System.nanoTime();
            }
            if (ended) {
                return;
            }
            int first = block * BLOCK;
            say(send(first, block % ABORTED_OF != ABORTED_OF - 1) + " " + first + " " + (first + BLOCK));
            long now = System.nanoTime();
            due = first < backlog ? now : Math.max(due + 1_000_000_000L * BLOCK / rate, now);
            Thread.sleep((due - now) / 1_000_000);
        }
    }

    private static void say(String line) {
        WORDS.println(line);
        WORDS.flush();
    }

    /** Send a block in a transaction and end it; return what became of it. */
    private String send(int first, boolean commit) throws InterruptedException {
        Transaction transaction = open();
        List<CompletableFuture<?>> receipts = new ArrayList<>();
        for (int number = first; number < first + BLOCK; number++) {
            String key = "transactional-" + number % KEYS;
            receipts.add(producer.newMessage(transaction)
                    .key(key)
                    .eventTime(System.currentTimeMillis())
                    .value(("{\"key\": \"" + key + "\", \"n\": " + number + ", \"pad\": \"" + PAD + "\"}").getBytes())
                    .sendAsync());
        }
        boolean whole = commit;
        try {
            CompletableFuture.allOf(receipts.toArray(CompletableFuture[]::new)).get(RECEIPTS_S, TimeUnit.SECONDS);
        } catch (ExecutionException | TimeoutException error) {
            System.err.println("block at " + first + " is aborted: " + error);
            whole = false;
        }
        return whole ? commit(transaction) : abort(transaction);
    }

    private Transaction open() throws InterruptedException {
        while (true) {
            try {
                return client.newTransaction()
                        .withTransactionTimeout(TTL_S, TimeUnit.SECONDS)
                        .build()
                        .get();
            } catch (ExecutionException error) {
                System.err.println("no transaction: " + error);
                Thread.sleep(PAUSE_MS); // where no broker comes back, `listen` ends it
            }
        }
    }

    /** Ask for the commit until there is an answer: a transaction that is gone has ended, no one knows how. */
    private String commit(Transaction transaction) throws InterruptedException {
        return end(transaction, true) ? "committed" : "in-doubt";
    }

    /** It was never to be committed, so it is aborted now, or when its time is out. */
    private String abort(Transaction transaction) throws InterruptedException {
        end(transaction, false);
        return "aborted";
    }

    /** Return whether the coordinator has said that it is done. */
    private boolean end(Transaction transaction, boolean commit) throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(ENDING_S);
        while (System.nanoTime() < deadline) {
            try {
                (commit ? transaction.commit() : transaction.abort()).get();
                return true;
            } catch (ExecutionException error) {
                System.err.println((commit ? "commit: " : "abort: ") + error);
                Throwable cause = error.getCause();
                if (cause instanceof TransactionNotFoundException || cause instanceof InvalidTxnStatusException) {
                    return false;
                }
                Thread.sleep(PAUSE_MS);
            }
        }
        return false;
    }
}
