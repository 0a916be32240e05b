import io.netty.buffer.Unpooled;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentMap;
import org.apache.bookkeeper.client.LedgerMetadataBuilder;
import org.apache.bookkeeper.client.api.DigestType;
import org.apache.bookkeeper.client.api.LastConfirmedAndEntry;
import org.apache.bookkeeper.client.api.LedgerEntries;
import org.apache.bookkeeper.client.api.LedgerEntry;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.bookkeeper.client.api.ReadHandle;
import org.apache.bookkeeper.client.impl.LedgerEntriesImpl;
import org.apache.bookkeeper.client.impl.LedgerEntryImpl;
import org.apache.bookkeeper.common.util.OrderedScheduler;
import org.apache.bookkeeper.mledger.LedgerOffloaderStats;
import org.apache.bookkeeper.mledger.offload.filesystem.impl.FileSystemManagedLedgerOffloader;
import org.apache.bookkeeper.mledger.offload.jcloud.impl.BlobStoreManagedLedgerOffloader;
import org.apache.bookkeeper.mledger.offload.jcloud.impl.OffsetsCache;
import org.apache.bookkeeper.mledger.offload.jcloud.provider.TieredStorageConfiguration;
import org.apache.bookkeeper.net.BookieId;
import org.apache.pulsar.common.policies.data.OffloadPoliciesImpl;
import org.jclouds.blobstore.BlobStore;

/**
 * Has Pulsar's own offloaders store a ledger. Arguments: ignored, ledger, UUID, bytes of a block, managed ledger, a folder
 * for the MapFile. Input: its entries, a line of hexadecimal digits each. Output: a line of JSON for each object.
 */
public class Offloads {
    public static void main(String[] arguments) throws Exception {
        UUID uuid = UUID.fromString(arguments[2]);
        Stored ledger = new Stored(Long.parseLong(arguments[1]));
        Map<String, String> extra = Map.of("ManagedLedgerName", arguments[4]);
        OrderedScheduler scheduler = OrderedScheduler.newSchedulerBuilder().numThreads(1).name("offload").build();
        LedgerOffloaderStats stats = LedgerOffloaderStats.create(false, false, scheduler, 60);

        Properties settings = new Properties();
        settings.setProperty("managedLedgerOffloadDriver", "transient");
        settings.setProperty("managedLedgerOffloadBucket", "bucket");
        settings.setProperty("managedLedgerOffloadMaxBlockSizeInBytes", arguments[3]);
        var blobs = BlobStoreManagedLedgerOffloader.create(
            TieredStorageConfiguration.create(settings), Map.of(), scheduler, scheduler, stats, new OffsetsCache());
        blobs.offload(ledger, uuid, extra).get();
        for (BlobStore store : stores(blobs).values()) {
            for (var listed : store.list("bucket")) {
                try (InputStream in = store.getBlob("bucket", listed.getName()).getPayload().openStream()) {
                    tell(listed.getName(), in.readAllBytes());
                }
            }
        }

        Path folder = Path.of(arguments[5]);
        OffloadPoliciesImpl policies = new OffloadPoliciesImpl();
        policies.setManagedLedgerOffloadDriver("filesystem");
        policies.setFileSystemURI(folder.toUri().toString());
        policies.setManagedLedgerOffloadMaxThreads(1);
        policies.setManagedLedgerOffloadPrefetchRounds(1);
        FileSystemManagedLedgerOffloader.create(policies, scheduler, stats).offload(ledger, uuid, extra).get();
        try (var written = Files.walk(folder)) {
            for (Path one : written.filter(Files::isRegularFile).sorted().toList()) {
                String name = one.getFileName().toString();
                if (name.equals("data") || name.equals("index")) {
                    tell(folder.relativize(one).toString().replace(File.separatorChar, '/'), Files.readAllBytes(one));
                }
            }
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);  // the offloaders leave threads
    }

    private static void tell(String name, byte[] bytes) {
        System.out.printf("{\"name\": \"%s\", \"bytes\": \"%s\"}%n", name, Base64.getEncoder().encodeToString(bytes));
    }

    @SuppressWarnings("unchecked")
    private static ConcurrentMap<Object, BlobStore> stores(Object offloader) throws Exception {
        Field field = BlobStoreManagedLedgerOffloader.class.getDeclaredField("blobStores");
        field.setAccessible(true);
        return (ConcurrentMap<Object, BlobStore>) field.get(offloader);
    }

    /** A closed ledger whose entries come from the standard input. */
    private static final class Stored implements ReadHandle {
        private final long id;
        private final List<byte[]> entries = new ArrayList<>();
        private long length;

        Stored(long id) throws Exception {
            this.id = id;
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                byte[] entry = java.util.HexFormat.of().parseHex(line);
                entries.add(entry);
                length += entry.length;
            }
        }

        @Override
        public LedgerMetadata getLedgerMetadata() {
            return LedgerMetadataBuilder.create().withId(id).withMetadataFormatVersion(3).withEnsembleSize(1)
                .withWriteQuorumSize(1).withAckQuorumSize(1).withDigestType(DigestType.CRC32C).withPassword(new byte[0])
                .newEnsembleEntry(0, List.of(BookieId.parse("bookie:3181"))).withClosedState()
                .withLastEntryId(getLastAddConfirmed()).withLength(length).build();
        }

        @Override
        public CompletableFuture<LedgerEntries> readAsync(long first, long last) {
            List<LedgerEntry> found = new ArrayList<>();
            for (long entry = first; entry <= last; entry++) {
                byte[] bytes = entries.get((int) entry);
                found.add(LedgerEntryImpl.create(id, entry, bytes.length, Unpooled.wrappedBuffer(bytes)));
            }
            return CompletableFuture.completedFuture(LedgerEntriesImpl.create(found));
        }

        @Override
        public long getId() {
            return id;
        }

        @Override
        public long getLastAddConfirmed() {
            return entries.size() - 1;
        }

        @Override
        public long getLength() {
            return length;
        }

        @Override
        public boolean isClosed() {
            return true;
        }

        @Override
        public CompletableFuture<Void> closeAsync() {
            return CompletableFuture.completedFuture(null);
        }

        @Override
        public CompletableFuture<LedgerEntries> readUnconfirmedAsync(long first, long last) {
            return readAsync(first, last);
        }

        @Override
        public CompletableFuture<Long> readLastAddConfirmedAsync() {
            return CompletableFuture.completedFuture(getLastAddConfirmed());
        }

        @Override
        public CompletableFuture<Long> tryReadLastAddConfirmedAsync() {
            return readLastAddConfirmedAsync();
        }

        @Override
        public CompletableFuture<LastConfirmedAndEntry> readLastAddConfirmedAndEntryAsync(long entry, long ms, boolean par) {
            throw new UnsupportedOperationException();
        }
    }
}
