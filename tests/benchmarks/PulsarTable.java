import java.io.IOException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A data source of Spark's own kind over the official Java client: value and key, a task for each topic partition.
 *
 * <p>Options: service (the URL), topic, partitions, rows (in each partition), classpath (of PulsarRows and the client).
 * The client lives behind a class loader of its own, since Spark brings other versions of what it needs.
 */
public final class PulsarTable implements TableProvider, Table, SupportsRead, ScanBuilder, Scan, Batch {
    private static final StructType SCHEMA =
            new StructType().add("value", DataTypes.BinaryType).add("__key", DataTypes.BinaryType);
    private static ClassLoader client;

    private CaseInsensitiveStringMap options;

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap given) {
        return SCHEMA;
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
        return this;
    }

    @Override
    public String name() {
        return "PulsarTable";
    }

    @Override
    @SuppressWarnings("deprecation") // columns() calls it
    public StructType schema() {
        return SCHEMA;
    }

    @Override
    public Set<TableCapability> capabilities() {
        return Set.of(TableCapability.BATCH_READ);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap given) {
        options = given;
        return this;
    }

    @Override
    public Scan build() {
        return this;
    }

    @Override
    public StructType readSchema() {
        return SCHEMA;
    }

    @Override
    public Batch toBatch() {
        return this;
    }

    @Override
    public InputPartition[] planInputPartitions() {
        InputPartition[] parts = new InputPartition[options.getInt("partitions", 1)];
        for (int number = 0; number < parts.length; number++) {
            parts[number] = new Part(
                    options.get("service"),
                    options.get("topic") + "-partition-" + number,
                    options.getLong("rows", 0),
                    options.get("classpath"));
        }
        return parts;
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return new Factory();
    }

    private record Part(String service, String topic, long rows, String classpath) implements InputPartition {}

    private static final class Factory implements PartitionReaderFactory {
        @Override
        public PartitionReader<InternalRow> createReader(InputPartition partition) {
            return new Reader((Part) partition);
        }
    }

    private static final class Reader implements PartitionReader<InternalRow> {
        private final Iterator<byte[][]> rows;
        private byte[][] row;

        @SuppressWarnings("unchecked")
        Reader(Part part) {
            try {
                rows = (Iterator<byte[][]>) client(part.classpath())
                        .loadClass("PulsarRows")
                        .getConstructor(String.class, String.class, long.class)
                        .newInstance(part.service(), part.topic(), part.rows());
            } catch (ReflectiveOperationException | IOException error) {
                throw new IllegalStateException(error);
            }
        }

        @Override
        public boolean next() {
            boolean there = rows.hasNext();
            row = there ? rows.next() : null;
            return there;
        }

        @Override
        public InternalRow get() {
            return new GenericInternalRow(new Object[] {row[0], row[1]});
        }

        @Override
        public void close() throws IOException {
            try {
                ((AutoCloseable) rows).close();
            } catch (Exception error) {
                throw new IOException(error);
            }
        }
    }

    private static synchronized ClassLoader client(String classpath) throws MalformedURLException {
        if (client == null) {
            String[] places = classpath.split(":");
            URL[] urls = new URL[places.length];
            for (int place = 0; place < places.length; place++) {
                urls[place] = Path.of(places[place]).toUri().toURL();
            }
            client = new URLClassLoader(urls, ClassLoader.getPlatformClassLoader());
        }
        return client;
    }
}
