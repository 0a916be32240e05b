import java.io.IOException;
import java.util.Iterator;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.SizeUnit;

/** The first rows of a topic partition, value and key of each, by the official client, which stays connected. */
public final class PulsarRows implements Iterator<byte[][]>, AutoCloseable {
    private static final int QUEUE = 10_000;
    private static PulsarClient client;

    private final Reader<byte[]> reader;
    private long left;

    public PulsarRows(String serviceUrl, String topic, long rows) throws PulsarClientException {
        reader = client(serviceUrl)
                .newReader()
                .topic(topic)
                .startMessageId(MessageId.earliest)
                .receiverQueueSize(QUEUE)
                .create();
        left = rows;
    }

    @Override
    public boolean hasNext() {
        return left > 0;
    }

    @Override
    public byte[][] next() {
        try {
            Message<byte[]> message = reader.readNext();
            left--;
            return new byte[][] {message.getData(), message.getKeyBytes()};
        } catch (PulsarClientException error) {
            throw new IllegalStateException(error);
        }
    }

    @Override
    public void close() throws IOException {
        reader.close();
    }

    private static synchronized PulsarClient client(String serviceUrl) throws PulsarClientException {
        if (client == null) {
            client = PulsarClient.builder()
                    .serviceUrl(serviceUrl)
                    .ioThreads(2)
                    .memoryLimit(256, SizeUnit.MEGA_BYTES)
                    .build();
        }
        return client;
    }
}
