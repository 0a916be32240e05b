import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import org.apache.pulsar.client.api.CryptoKeyReader;
import org.apache.pulsar.client.api.EncryptionKeyInfo;
import org.apache.pulsar.client.impl.crypto.MessageCryptoBc;
import org.apache.pulsar.common.api.proto.MessageMetadata;

/**
 * Lets the Java client's own class encrypt and decrypt. A line in, JSON: the PEM texts of keys by name, and in hexadecimal
 * the metadata and the payload. A line out: these two anew, or the word null where it can't be decrypted.
 */
public final class Encryption {
    private static final HexFormat HEX = HexFormat.of();
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            JsonNode asked = JSON.readTree(line);
            var payload = HEX.parseHex(asked.get("payload").asText());
            var metadata = new MessageMetadata();
            metadata.parseFrom(HEX.parseHex(asked.get("metadata").asText()));
            var answer = arguments[0].equals("encrypt")
                    ? encrypt(asked.get("keys"), metadata, payload)
                    : decrypt(asked.get("keys"), metadata, payload);
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    private static Map<String, String> encrypt(JsonNode keys, MessageMetadata metadata, byte[] payload)
            throws Exception {
        Set<String> names = new LinkedHashSet<>();
        keys.fieldNames().forEachRemaining(names::add);
        var crypto = new MessageCryptoBc("vectors", true);
        var reader = reader(keys);
        crypto.addPublicKeyCipher(names, reader);
        var out = ByteBuffer.allocate(crypto.getMaxOutputSize(payload.length));
        crypto.encrypt(names, reader, () -> metadata, ByteBuffer.wrap(payload), out);
        return Map.of("metadata", HEX.formatHex(metadata.toByteArray()), "payload", rest(out));
    }

    private static Map<String, String> decrypt(JsonNode keys, MessageMetadata metadata, byte[] payload) {
        var crypto = new MessageCryptoBc("vectors", false);
        var out = ByteBuffer.allocate(crypto.getMaxOutputSize(payload.length));
        var can = crypto.decrypt(() -> metadata, ByteBuffer.wrap(payload), out, reader(keys));
        return can ? Map.of("payload", rest(out)) : null;
    }

    private static String rest(ByteBuffer buffer) {
        var bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HEX.formatHex(bytes);
    }

    private static CryptoKeyReader reader(JsonNode keys) {
        return new CryptoKeyReader() {
            @Override
            public EncryptionKeyInfo getPublicKey(String name, Map<String, String> metadata) {
                return getPrivateKey(name, metadata);
            }

            @Override
            public EncryptionKeyInfo getPrivateKey(String name, Map<String, String> metadata) {
                var text = keys.has(name) ? keys.get(name).asText() : "";
                return new EncryptionKeyInfo(text.getBytes(StandardCharsets.UTF_8), Map.of());
            }
        };
    }
}
