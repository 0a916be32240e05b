import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.buffer.UnpooledByteBufAllocator;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.bookkeeper.client.LedgerMetadataBuilder;
import org.apache.bookkeeper.client.api.DigestType;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.bookkeeper.meta.LedgerMetadataSerDe;
import org.apache.bookkeeper.net.BookieId;
import org.apache.bookkeeper.proto.BookieProtoEncoding;
import org.apache.bookkeeper.proto.DataFormats.LedgerMetadataFormat;
import org.apache.bookkeeper.proto.checksum.DigestManager;
import org.apache.bookkeeper.util.ByteBufList;

/** Writes what BookKeeper's own classes make of ledgers' metadata, stored entries and frames: a line of JSON each. */
public class Ledgers {
    private static final ByteBufAllocator ALLOCATOR = UnpooledByteBufAllocator.DEFAULT;
    private static final byte[] PASSWORD = "secret".getBytes(StandardCharsets.UTF_8);
    private static final long LEDGER = 4711;
    private static final byte VERSION = 2;

    public static void main(String[] arguments) throws Exception {
        for (int format = 1; format <= 3; format++) {
            for (String state : List.of("OPEN", "IN_RECOVERY", "CLOSED")) {
                for (DigestType digest : format == 1 ? List.of(DigestType.MAC) : List.of(DigestType.values())) {
                    metadata(format, state, digest);
                }
            }
        }
        for (LedgerMetadataFormat.DigestType digest : LedgerMetadataFormat.DigestType.values()) {
            stored(digest);
        }
        frames();
    }

    private static void metadata(int format, String state, DigestType digest) throws Exception {
        LedgerMetadataBuilder builder = LedgerMetadataBuilder.create().withId(LEDGER).withMetadataFormatVersion(format)
            .withEnsembleSize(3).withWriteQuorumSize(2).withAckQuorumSize(format == 1 ? 2 : 1)
            .newEnsembleEntry(0, bookies("a:3181", "b:3181", "c:3181"))
            .newEnsembleEntry(17, bookies("a:3181", "bookie-7", "c:3181"));
        if (format > 1) {
            builder.withDigestType(digest).withPassword(PASSWORD)
                .withCustomMetadata(Map.of("application", "pulsar".getBytes(StandardCharsets.UTF_8)));
        }
        if (state.equals("CLOSED")) {
            builder.withClosedState().withLastEntryId(41).withLength(4200);
        } else if (state.equals("IN_RECOVERY")) {
            builder.withInRecoveryState();
        }
        LedgerMetadata made = builder.build();
        String znode = Base64.getEncoder().encodeToString(new LedgerMetadataSerDe().serialize(made));
        System.out.printf("{\"kind\": \"metadata\", \"format\": %d, \"state\": \"%s\", \"digest\": \"%s\", \"znode\": \"%s\", "
            + "\"printed\": \"%s\"}%n", format, state, digest, znode, made.toSafeString());
    }

    private static List<BookieId> bookies(String... ids) {
        return List.of(ids).stream().map(BookieId::parse).toList();
    }

    private static void stored(LedgerMetadataFormat.DigestType digest) throws Exception {
        DigestManager manager = DigestManager.instantiate(LEDGER, PASSWORD, digest, ALLOCATOR, false);
        ByteBuf payload = Unpooled.copiedBuffer("the payload", StandardCharsets.UTF_8);
        Object made = manager.computeDigestAndPackageForSending(6, 5, 77, payload, new byte[20], 0);
        String hex = ByteBufUtil.hexDump(ByteBufList.coalesce((ByteBufList) made));
        System.out.printf("{\"kind\": \"stored\", \"digest\": \"%s\", \"stored\": \"%s\"}%n", digest, hex);
    }

    private static void frames() throws Exception {
        var requests = new BookieProtoEncoding.RequestEnDeCoderPreV3(null);
        var responses = new BookieProtoEncoding.ResponseEnDeCoderPreV3(null);
        String protocol = "org.apache.bookkeeper.proto.BookieProtocol$";
        Object read = call(protocol + "ReadRequest", VERSION, LEDGER, 6L, (short) 0, null);
        Object batch = call(protocol + "BatchedReadRequest", VERSION, LEDGER, 6L, (short) 0, null, 9L, 100, 5000L);
        frame("read request", requests.encode(read, ALLOCATOR));
        frame("batch request", requests.encode(batch, ALLOCATOR));
        ByteBuf entry = Unpooled.copiedBuffer("stored", StandardCharsets.UTF_8);
        frame("read", responses.encode(make(protocol + "ReadResponse", VERSION, 0, LEDGER, 6L, entry), ALLOCATOR));
        frame("no entry", responses.encode(make(protocol + "ReadResponse", VERSION, 2, LEDGER, 6L), ALLOCATOR));
        ByteBufList entries = ByteBufList.get(
            Unpooled.copiedBuffer("one", StandardCharsets.UTF_8), Unpooled.copiedBuffer("three", StandardCharsets.UTF_8));
        frame("batch", responses.encode(
            make(protocol + "BatchedReadResponse", VERSION, 0, LEDGER, 6L, 9L, entries), ALLOCATOR));
        frame("no batch", responses.encode(make(protocol + "BatchedReadResponse", VERSION, 1, LEDGER, 6L, 9L), ALLOCATOR));
    }

    private static Object call(String type, Object... arguments) throws Exception {
        for (Method method : Class.forName(type).getDeclaredMethods()) {
            if (method.getName().equals("create") && method.getParameterCount() == arguments.length) {
                method.setAccessible(true);
                return method.invoke(null, arguments);
            }
        }
        throw new NoSuchMethodException(type);
    }

    private static Object make(String type, Object... arguments) throws Exception {
        for (Constructor<?> constructor : Class.forName(type).getDeclaredConstructors()) {
            if (constructor.getParameterCount() == arguments.length) {
                constructor.setAccessible(true);
                return constructor.newInstance(arguments);
            }
        }
        throw new NoSuchMethodException(type);
    }

    private static void frame(String name, Object made) {
        ByteBuf bytes = made instanceof ByteBufList list ? ByteBufList.coalesce(list) : (ByteBuf) made;
        System.out.printf("{\"kind\": \"frame\", \"name\": \"%s\", \"frame\": \"%s\"}%n", name, ByteBufUtil.hexDump(bytes));
    }
}
