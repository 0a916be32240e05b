import com.fasterxml.jackson.databind.ObjectMapper;
import com.scurrilous.circe.checksum.Crc32cIntChecksum;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.pulsar.client.impl.JavaStringHash;
import org.apache.pulsar.client.impl.Murmur3Hash32;
import org.apache.pulsar.common.api.proto.BaseCommand;
import org.apache.pulsar.common.api.proto.MessageMetadata;
import org.apache.pulsar.common.api.proto.SingleMessageMetadata;
import org.apache.pulsar.common.compression.CompressionCodecProvider;
import org.apache.pulsar.common.protocol.Commands;

/** Asks the broker's and the Java client's own classes. One line in, one line of JSON out. */
public final class BrokerClasses {
    private static final String PACKAGE = "org.apache.pulsar.common.api.proto.";
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Object answer = switch (args[0]) {
                case "frame" -> frame(HexFormat.of().parseHex(line));
                case "hash" -> hash(new String(HexFormat.of().parseHex(line), StandardCharsets.UTF_8));
                case "tags" -> tags(Class.forName(PACKAGE + line));
                case "values" -> values(Class.forName(PACKAGE + line));
                default -> throw new IllegalArgumentException(args[0]);
            };
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    /** The command of a frame, its metadata, and each message with its own metadata. */
    private static Map<String, Object> frame(byte[] bytes) throws Exception {
        ByteBuf frame = Unpooled.wrappedBuffer(bytes);
        Map<String, Object> answer = new LinkedHashMap<>();
        if (frame.readUnsignedInt() != frame.readableBytes()) {
            throw new IllegalArgumentException("total size");
        }
        int size = frame.readInt();
        ByteBuf head = frame.readSlice(size);
        BaseCommand command = new BaseCommand();
        command.parseFrom(head, size);
        answer.put("command", fields(command));
        if (!frame.isReadable()) {
            return answer;
        }
        if (Commands.readChecksum(frame) != Crc32cIntChecksum.computeChecksum(frame)) {
            throw new IllegalArgumentException("checksum");
        }
        MessageMetadata metadata = Commands.parseMessageMetadata(frame);
        answer.put("metadata", fields(metadata));
        ByteBuf payload = CompressionCodecProvider.getCompressionCodec(metadata.getCompression())
                .decode(frame, metadata.getUncompressedSize() == 0 ? frame.readableBytes() : metadata.getUncompressedSize());
        List<Object> messages = new ArrayList<>();
        if (metadata.hasNumMessagesInBatch()) {
            for (int i = 0; i < metadata.getNumMessagesInBatch(); i++) {
                SingleMessageMetadata single = new SingleMessageMetadata();
                ByteBuf value = Commands.deSerializeSingleMessageInBatch(
                        payload, single, i, metadata.getNumMessagesInBatch());
                messages.add(Map.of("metadata", fields(single), "value", ByteBufUtil.hexDump(value)));
            }
            if (payload.isReadable()) {
                throw new IllegalArgumentException("bytes after the last message");
            }
        } else {
            messages.add(Map.of("value", ByteBufUtil.hexDump(payload)));
        }
        answer.put("messages", messages);
        return answer;
    }

    private static Map<String, Object> hash(String key) {
        return Map.of(
                "murmur3", Murmur3Hash32.getInstance().makeHash(key),
                "java", JavaStringHash.getInstance().makeHash(key));
    }

    /** Field number and wire type of each field of a message class. */
    private static Map<String, Object> tags(Class<?> type) throws Exception {
        Map<String, Object> answer = new TreeMap<>();
        for (Field field : type.getDeclaredFields()) {
            String name = field.getName();
            if (name.endsWith("_TAG") && !name.endsWith("_SIZE")) {
                field.setAccessible(true);
                answer.put(name.substring(1, name.length() - 4).toLowerCase(), field.getInt(null));
            }
        }
        return answer;
    }

    private static Map<String, Object> values(Class<?> type) throws Exception {
        Map<String, Object> answer = new TreeMap<>();
        for (Object constant : type.getEnumConstants()) {
            answer.put(constant.toString(), type.getMethod("getValue").invoke(constant));
        }
        return answer;
    }

    /** The fields that are set: bytes as hexadecimal, enums as numbers, the rest as they are. */
    private static Map<String, Object> fields(Object message) throws Exception {
        Map<String, Object> answer = new TreeMap<>();
        for (String name : tags(message.getClass()).keySet()) {
            Object value = field(message, camel(name));
            if (value != null) {
                answer.put(name, value);
            }
        }
        return answer;
    }

    private static Object field(Object message, String name) throws Exception {
        Method has = method(message, "has" + name);
        if (has != null) {
            if (!(boolean) has.invoke(message)) {
                return null;
            }
            Method get = method(message, "get" + name);
            return plain((get != null ? get : method(message, "is" + name)).invoke(message));
        }
        String one = name.endsWith("ies") ? name.substring(0, name.length() - 3) + "y"
                : name.endsWith("s") ? name.substring(0, name.length() - 1) : name;
        Method count = method(message, "get" + (name.endsWith("s") ? name : name + "s") + "Count");
        List<Object> values = new ArrayList<>();
        for (int i = 0; i < (int) count.invoke(message); i++) {
            values.add(plain(message.getClass().getMethod("get" + one + "At", int.class).invoke(message, i)));
        }
        return values.isEmpty() ? null : values;
    }

    private static Object plain(Object value) throws Exception {
        if (value instanceof byte[] bytes) {
            return HexFormat.of().formatHex(bytes);
        }
        if (value instanceof Enum<?>) {
            return value.getClass().getMethod("getValue").invoke(value);
        }
        boolean scalar = value instanceof String || value instanceof Number || value instanceof Boolean;
        return scalar ? value : fields(value);
    }

    private static Method method(Object message, String name) {
        try {
            return message.getClass().getMethod(name);
        } catch (NoSuchMethodException none) {
            return null;
        }
    }

    private static String camel(String name) {
        StringBuilder out = new StringBuilder();
        for (String word : name.split("_")) {
            out.append(Character.toUpperCase(word.charAt(0))).append(word.substring(1));
        }
        return out.toString();
    }
}
