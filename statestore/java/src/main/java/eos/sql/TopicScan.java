package eos.sql;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownFilters;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonFilterPushdownResult;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;

/**
 * A scan of the Python source with only the columns that the query needs, and with its filters.
 *
 * <p>Spark prunes no columns of a Python source, and hands filters to one only where
 * {@code spark.sql.python.filterPushdown.enabled} is set. What is declared to the source is all that it decodes, so it is
 * made anew with the columns of the query.
 */
final class TopicScan implements SupportsPushDownRequiredColumns, SupportsPushDownFilters {
    /** Costs nothing: it is not in a message. Spark takes no Python source without a column, as count(*) needs it. */
    private static final String CHEAPEST = "__partition";

    /** The columns whose filters the source knows: {@code eos/source/filters.py}. */
    private static final Set<String> READ_BY = Set.of("__topic", "__partition", "__publishTime");

    private final StructType all;
    private final CaseInsensitiveStringMap options;
    private StructType columns;
    private Filter[] filters = new Filter[0];

    TopicScan(StructType all, CaseInsensitiveStringMap options) {
        this.all = all;
        this.columns = all;
        this.options = options;
    }

    /** Whole columns: the source gives no part of a struct. */
    @Override
    public void pruneColumns(StructType required) {
        List<StructField> whole = new ArrayList<>();
        for (String name : required.fieldNames()) {
            whole.add(all.apply(name));
        }
        if (whole.isEmpty()) {
            whole.add(all.apply(CHEAPEST));
        }
        columns = new StructType(whole.toArray(StructField[]::new));
    }

    /** All are taken, to read fewer topics and times; and all are given back, for Spark to look at each row. */
    @Override
    public Filter[] pushFilters(Filter[] given) {
        filters = given;
        return given;
    }

    @Override
    public Filter[] pushedFilters() {
        return new Filter[0];
    }

    @Override
    public Scan build() {
        PythonDataSourceV2 source = Python.source();
        SupportsRead table = (SupportsRead) Python.table(source, columns, options.asCaseSensitiveMap());
        push(source);
        return table.newScanBuilder(options).build();
    }

    /** Hand the filters over by which less is read. Any other is of no use there. */
    private void push(PythonDataSourceV2 source) {
        Filter[] useful = Arrays.stream(filters)
                .filter(one -> READ_BY.containsAll(List.of(one.references())))
                .toArray(Filter[]::new);
        if (useful.length == 0) {
            return;
        }
        try {
            Option<PythonFilterPushdownResult> pushed = source.source()
                    .pushdownFiltersInPython(
                            source.getOrCreateDataSourceInPython(Python.NAME, options, Option.apply(columns)),
                            columns,
                            useful);
            if (pushed.isDefined()) {
                source.setReadInfo(pushed.get().readInfo());
            }
        } catch (NoSuchMethodError older) {
            // Spark 4.0: it reads everything, and filters the rows itself.
        } catch (Exception error) {
            // So does any other where Python has no such value: it has no moment after the year 9999, and in New York
            // 9999-12-31 ends after it. The read itself says what else is wrong.
        }
    }
}
