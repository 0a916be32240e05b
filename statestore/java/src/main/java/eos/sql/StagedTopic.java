package eos.sql;

import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A topic that a statement makes and fills. Spark gives the options of the write only when it asks for the writer, after
 * it has compared the columns. So the topic is made then. A topic whose rows could not be written is left: other
 * clients may use it already.
 */
final class StagedTopic implements StagedTable, SupportsWrite {
    /** Makes the topic, by the options of the write. */
    interface Maker {
        Table make(CaseInsensitiveStringMap write) throws TableAlreadyExistsException;
    }

    private final Table planned;
    private final Maker maker;

    StagedTopic(Table planned, Maker maker) {
        this.planned = planned;
        this.maker = maker;
    }

    @Override
    public String name() {
        return planned.name();
    }

    @Override
    @SuppressWarnings("deprecation") // as TopicOfCatalog
    public StructType schema() {
        return planned.schema();
    }

    @Override
    public Set<TableCapability> capabilities() {
        return planned.capabilities();
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        try {
            Table made = maker.make(info.options());
            return ((SupportsWrite) made).newWriteBuilder(info);
        } catch (TableAlreadyExistsException other) {
            throw new IllegalStateException("Another client has made the topic meanwhile: " + name(), other);
        }
    }

    @Override
    public void commitStagedChanges() {}

    @Override
    public void abortStagedChanges() {}
}
