import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.pulsar.broker.systopic.SystemTopicClient;
import org.apache.pulsar.broker.transaction.buffer.impl.TableView;
import org.apache.pulsar.client.api.Message;

/**
 * Two topics of a namespace look for their snapshots at once, with the broker's own class and a scripted reader. The
 * thread of the first topic stops while it decodes the last entry, which is the second topic's. Says what each finds.
 */
public final class SnapshotRace {
    private static final List<String> TOPICS = List.of("persistent://public/default/a", "persistent://public/default/b");
    private static final CountDownLatch DECODING = new CountDownLatch(1);
    private static final CountDownLatch GO_ON = new CountDownLatch(1);
    private static final AtomicInteger NEXT = new AtomicInteger();

    public static void main(String[] arguments) throws Exception {
        TableView<String> view = new TableView<>(
                topic -> CompletableFuture.completedFuture(reader()), 30_000, Executors.newScheduledThreadPool(1));
        CompletableFuture<String> first = CompletableFuture.supplyAsync(() -> latest(view, TOPICS.get(0)));
        DECODING.await();
        System.out.println("beside " + latest(view, TOPICS.get(1)));
        GO_ON.countDown();
        System.out.println("first " + first.get());
        System.out.println("afterwards " + latest(view, TOPICS.get(1)));
        System.exit(0);
    }

    private static String latest(TableView<String> view, String topic) {
        try {
            return view.readLatest(topic);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    @SuppressWarnings("unchecked")
    private static SystemTopicClient.Reader<String> reader() {
        return (SystemTopicClient.Reader<String>) scripted(SystemTopicClient.Reader.class, (self, method, arguments) ->
                switch (method.getName()) {
                    case "hasMoreEventsAsync" -> CompletableFuture.completedFuture(NEXT.get() < TOPICS.size());
                    case "readNextAsync" -> CompletableFuture.completedFuture(message(NEXT.getAndIncrement()));
                    default -> CompletableFuture.completedFuture(null);
                });
    }

    private static Object message(int place) {
        return scripted(Message.class, (self, method, arguments) -> switch (method.getName()) {
            case "getKey" -> TOPICS.get(place);
            case "getValue" -> {
                if (place == TOPICS.size() - 1 && DECODING.getCount() > 0) {
                    DECODING.countDown();
                    GO_ON.await();
                }
                yield "snapshot-" + place;
            }
            default -> null;
        });
    }

    private static Object scripted(Class<?> type, InvocationHandler script) {
        return Proxy.newProxyInstance(SnapshotRace.class.getClassLoader(), new Class<?>[] {type}, script);
    }
}
