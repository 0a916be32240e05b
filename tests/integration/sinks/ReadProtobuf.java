import com.google.protobuf.DynamicMessage;
import com.google.protobuf.TextFormat;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.schema.GenericRecord;

/**
 * Prints each message of a topic as the client's schema API has it: the number of its schema's version, and the message
 * in protobuf's text format.
 *
 * <p>Arguments: service URL, topic, number of messages.
 */
public final class ReadProtobuf {
    public static void main(String[] args) throws Exception {
        try (PulsarClient client = PulsarClient.builder().serviceUrl(args[0]).build();
                Reader<GenericRecord> reader = client.newReader(Schema.AUTO_CONSUME())
                        .topic(args[1])
                        .startMessageId(MessageId.earliest)
                        .create()) {
            for (int number = 0; number < Integer.parseInt(args[2]); number++) {
                Message<GenericRecord> message = reader.readNext();
                DynamicMessage value = (DynamicMessage) message.getValue().getNativeObject();
                byte[] version = message.getSchemaVersion();
                System.out.println("read " + version[version.length - 1] + " "
                        + TextFormat.printer().shortDebugString(value));
            }
        }
        System.exit(0);
    }
}
