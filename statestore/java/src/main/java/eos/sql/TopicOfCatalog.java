package eos.sql;

import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A topic as a table: Spark's own table of the Python source, which is given the catalog's options as well as those of
 * the statement. The catalog's options are nowhere shown, since some are credentials.
 */
final class TopicOfCatalog implements Table, SupportsRead, SupportsWrite {
    private final String name;
    private final StructType columns;
    private final Map<String, String> options;
    private final Supplier<Map<String, String>> properties;
    private final Table table;

    TopicOfCatalog(
            String name, StructType columns, Map<String, String> options, Supplier<Map<String, String>> properties) {
        this.name = name;
        this.columns = columns;
        this.options = options;
        this.properties = properties;
        this.table = Python.table(Python.source(), columns, options);
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    @SuppressWarnings("deprecation") // columns() needs its own conversion; Spark makes it of this
    public StructType schema() {
        return columns;
    }

    /** Asked for by DESCRIBE EXTENDED and SHOW TBLPROPERTIES alone: a query does not wait for them. */
    @Override
    public Map<String, String> properties() {
        return properties.get();
    }

    @Override
    public Set<TableCapability> capabilities() {
        return table.capabilities();
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap more) {
        return new TopicScan(columns, with(more));
    }

    /** Spark itself hands no option of a table to a Python writer. */
    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        CaseInsensitiveStringMap all = with(info.options());
        return ((SupportsWrite) table).newWriteBuilder(new LogicalWriteInfo() {
            @Override
            public CaseInsensitiveStringMap options() {
                return all;
            }

            @Override
            public String queryId() {
                return info.queryId();
            }

            @Override
            public StructType schema() {
                return info.schema();
            }
        });
    }

    private CaseInsensitiveStringMap with(CaseInsensitiveStringMap more) {
        return with(options, more);
    }

    /** The options of a table, and those of a statement or of a reader, which win, however each is spelled. */
    static CaseInsensitiveStringMap with(Map<String, String> options, CaseInsensitiveStringMap more) {
        Map<String, String> all = new HashMap<>(options);
        more.asCaseSensitiveMap().forEach((word, value) -> {
            all.keySet().removeIf(other -> plain(other).equals(plain(word)));
            all.put(word, value);
        });
        return new CaseInsensitiveStringMap(all);
    }

    /** What the spellings of one option's name have in common, as Python's {@code spelling_key}. */
    private static String plain(String word) {
        return word.replaceAll("[_.]", "").toLowerCase(Locale.ROOT);
    }
}
