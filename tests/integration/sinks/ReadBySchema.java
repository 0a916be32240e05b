import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.TextFormat;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.sql.Time;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Date;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.avro.Schema.Field;
import org.apache.avro.generic.GenericFixed;
import org.apache.avro.generic.IndexedRecord;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.schema.GenericObject;
import org.apache.pulsar.client.api.schema.GenericRecord;
import org.apache.pulsar.common.schema.KeyValue;

/**
 * Says what the client's schema API finds in topics.
 *
 * <p>Argument: service URL. Each line of standard input is a topic, the number of its messages and, for JSON, the Avro
 * text of its schema, between tabs. The answer is "read" and a JSON list: of each message the number of its schema's version,
 * and the value. Numbers are as they are stored, but those with a fraction are their bits; bytes are hex; a record is
 * the list of its fields; a map has its keys in order; a message of protobuf is its text.
 */
public final class ReadBySchema {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (PulsarClient client = PulsarClient.builder().serviceUrl(args[0]).build()) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] asked = line.split("\t");
                org.apache.avro.Schema schema =
                        asked.length < 3 ? null : new org.apache.avro.Schema.Parser().parse(asked[2]);
                System.out.println("read " + MAPPER.writeValueAsString(
                        read(client, asked[0], Integer.parseInt(asked[1]), schema)));
            }
        }
        System.exit(0);
    }

    private static List<Object> read(PulsarClient client, String topic, int count, org.apache.avro.Schema json)
            throws IOException {
        List<Object> found = new ArrayList<>();
        try (Reader<GenericRecord> reader = client.newReader(Schema.AUTO_CONSUME())
                .topic(topic)
                .startMessageId(MessageId.earliest)
                .create()) {
            for (int number = 0; number < count; number++) {
                Message<GenericRecord> message = reader.readNext();
                List<Object> one = new ArrayList<>();
                one.add(ByteBuffer.wrap(message.getSchemaVersion()).getLong());
                Object value = ((Message<?>) message).getValue();
                one.add(value instanceof GenericObject generic
                        && generic.getNativeObject() instanceof JsonNode node
                        ? ofJson(node, json)
                        : plain(value));
                found.add(one);
            }
        }
        return found;
    }

    private static Object plain(Object value) {
        if (value instanceof GenericObject one) {
            return plain(one.getNativeObject());
        } else if (value instanceof KeyValue<?, ?> pair) {
            return list(pair.getKey(), pair.getValue());
        } else if (value instanceof DynamicMessage message) {
            return TextFormat.printer().shortDebugString(message);
        } else if (value instanceof IndexedRecord record) {
            return list(record.getSchema().getFields().stream().map(field -> record.get(field.pos())).toArray());
        } else if (value instanceof Map<?, ?> map) {
            Map<String, Object> sorted = new TreeMap<>();
            map.forEach((key, inner) -> sorted.put(key.toString(), plain(inner)));
            return sorted;
        } else if (value instanceof List<?> items) {
            return list(items.toArray());
        } else if (value instanceof byte[] bytes) {
            return HexFormat.of().formatHex(bytes);
        } else if (value instanceof ByteBuffer bytes) {
            byte[] copy = new byte[bytes.remaining()];
            bytes.duplicate().get(copy);
            return HexFormat.of().formatHex(copy);
        } else if (value instanceof GenericFixed fixed) {
            return HexFormat.of().formatHex(fixed.bytes());
        } else if (value instanceof Float || value instanceof Double) {
            return bits(((Number) value).doubleValue());
        } else if (value instanceof Date moment) { // java.sql's Time and Timestamp too
            return moment.getTime();
        } else if (value instanceof Instant moment) {
            return moment.getEpochSecond() * 1_000_000 + moment.getNano() / 1_000;
        } else if (value instanceof LocalDate day) {
            return day.toEpochDay();
        } else if (value instanceof LocalTime time) {
            return time.toNanoOfDay();
        } else if (value instanceof LocalDateTime moment) {
            return moment.toEpochSecond(ZoneOffset.UTC) * 1_000_000 + moment.getNano() / 1_000;
        }
        return value == null || value instanceof Number || value instanceof Boolean ? value : value.toString();
    }

    private static List<Object> list(Object... values) {
        List<Object> found = new ArrayList<>();
        for (Object value : values) {
            found.add(plain(value));
        }
        return found;
    }

    private static Object ofJson(JsonNode node, org.apache.avro.Schema schema) throws IOException {
        if (node == null || node.isNull()) {
            return null;
        }
        switch (schema.getType()) {
            case UNION:
                return ofJson(node, schema.getTypes().get(1));
            case RECORD:
                List<Object> fields = new ArrayList<>();
                for (Field field : schema.getFields()) {
                    fields.add(ofJson(node.get(field.name()), field.schema()));
                }
                return fields;
            case ARRAY:
                List<Object> items = new ArrayList<>();
                for (JsonNode item : node) {
                    items.add(ofJson(item, schema.getElementType()));
                }
                return items;
            case MAP:
                Map<String, Object> map = new TreeMap<>();
                for (Map.Entry<String, JsonNode> entry : node.properties()) {
                    map.put(entry.getKey(), ofJson(entry.getValue(), schema.getValueType()));
                }
                return map;
            case FLOAT:
                return bits((float) node.doubleValue());
            case DOUBLE:
                return bits(node.doubleValue());
            case BYTES:
            case FIXED:
                if (schema.getLogicalType() instanceof org.apache.avro.LogicalTypes.Decimal decimal) {
                    BigInteger unscaled = MAPPER.treeToValue(node, java.math.BigDecimal.class)
                            .setScale(decimal.getScale()).unscaledValue();
                    return HexFormat.of().formatHex(unscaled.toByteArray());
                }
                return HexFormat.of().formatHex(Base64.getDecoder().decode(node.textValue()));
            case BOOLEAN:
                return node.booleanValue();
            case INT:
            case LONG:
                return node.longValue();
            default:
                return node.textValue();
        }
    }

    private static String bits(double value) {
        return HexFormat.of().toHexDigits(Double.doubleToLongBits(value));
    }
}
