package eos.sql;

import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A cluster of Pulsar as a Spark catalog: tenant and namespace are the namespace of a table, the topic is the table.
 *
 * <p>Set by {@code spark.sql.catalog.NAME=eos.sql.PulsarCatalog}; every {@code spark.sql.catalog.NAME.OPTION} is an
 * option of the data source "pulsar".
 *
 * <p>It stages tables so that Spark asks it before it changes anything: for a catalog that does not, Spark replaces a
 * table by dropping it. Spark's other overloads of the stage methods all end in the three that are here.
 */
public final class PulsarCatalog implements StagingTableCatalog, SupportsNamespaces {
    private static final String NAMESPACE = "catalog.namespace";
    private static final String TABLE = "catalog.table";
    private static final String COLUMNS = "catalog.columns";
    private static final String PROPERTIES = "catalog.properties";
    private static final String AS_SELECT = "catalog.as.select";

    private String name;
    private Map<String, String> options;

    /**
     * Take the settings.
     *
     * @throws UnsupportedOperationException Spark is older than 4.0
     */
    @Override
    public void initialize(String catalog, CaseInsensitiveStringMap given) {
        Python.require("Remove the settings spark.sql.catalog." + catalog);
        name = catalog;
        options = Map.copyOf(given.asCaseSensitiveMap());
    }

    @Override
    public String name() {
        return name;
    }

    /** As Pulsar reads a topic's short name. */
    @Override
    public String[] defaultNamespace() {
        return new String[] {"public", "default"};
    }

    @Override
    public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
        if (!namespaceExists(namespace)) {
            throw new NoSuchNamespaceException(namespace);
        }
        StructType found = Python.ask("tables", in(namespace));
        return Arrays.stream(found.fieldNames())
                .map(table -> Identifier.of(namespace, table))
                .toArray(Identifier[]::new);
    }

    @Override
    public Table loadTable(Identifier table) throws NoSuchTableException {
        return loaded(table, Map.of());
    }

    /** {@code VERSION AS OF}: topics have no version numbers. The version is the text of the option endingOffsets. */
    @Override
    public Table loadTable(Identifier table, String version) throws NoSuchTableException {
        return loaded(table, Map.of("endingOffsets", version));
    }

    /**
     * {@code TIMESTAMP AS OF}: what was published before that time, which comes in microseconds. The option has no time
     * before 1970, and no message has one.
     */
    @Override
    public Table loadTable(Identifier table, long micros) throws NoSuchTableException {
        return loaded(table, Map.of("endingTime", Long.toString(Math.max(0, Math.floorDiv(micros, 1000)))));
    }

    private Table loaded(Identifier table, Map<String, String> more) throws NoSuchTableException {
        StructType found = Python.ask("table", of(table));
        if (found.length() == 0) {
            throw new NoSuchTableException(table);
        }
        Map<String, String> baked = new HashMap<>(options);
        baked.putAll(Python.texts((StructType) found.apply("options").dataType()));
        baked.putAll(more);
        return new TopicOfCatalog(
                name + "." + table,
                (StructType) found.apply("columns").dataType(),
                baked,
                () -> Python.texts(Python.ask("properties", of(table))));
    }

    @Override
    public Table createTable(Identifier table, StructType columns, Transform[] partitions, Map<String, String> more)
            throws TableAlreadyExistsException {
        refusePartitions(partitions);
        return created(table, asked(table, columns, more));
    }

    /** {@code CREATE TABLE … AS SELECT}: the topic is made when all is known by which Python may refuse to write. */
    @Override
    public StagedTable stageCreate(
            Identifier table, StructType columns, Transform[] partitions, Map<String, String> more) {
        refusePartitions(partitions);
        Map<String, String> asked = asked(table, columns, more);
        StructType found =
                (StructType) Python.ask("columns", asked).apply("columns").dataType();
        return new StagedTopic(new TopicOfCatalog(name + "." + table, found, options, () -> more), write -> {
            asked.put(AS_SELECT, "true");
            return created(table, TopicOfCatalog.with(asked, write).asCaseSensitiveMap());
        });
    }

    @Override
    public StagedTable stageReplace(
            Identifier table, StructType columns, Transform[] partitions, Map<String, String> more) {
        throw new UnsupportedOperationException("REPLACE TABLE" + REPLACES);
    }

    @Override
    public StagedTable stageCreateOrReplace(
            Identifier table, StructType columns, Transform[] partitions, Map<String, String> more) {
        throw new UnsupportedOperationException(
                "CREATE OR REPLACE TABLE, as also mode('overwrite').saveAsTable(…) asks for it," + REPLACES);
    }

    private static final String REPLACES =
            " is refused. Nothing takes messages back out of a topic, and a replaced topic"
                    + " would lose them for every reader. Nothing is changed. Add rows by INSERT INTO. Or run DROP TABLE and"
                    + " CREATE TABLE yourself.";

    private static void refusePartitions(Transform[] partitions) {
        if (partitions.length > 0) {
            throw new UnsupportedOperationException("PARTITIONED BY means nothing to a topic, whose partitions have no"
                    + " columns. Nothing is made. Give their number: TBLPROPERTIES ('partitions' = '3').");
        }
    }

    private Map<String, String> asked(Identifier table, StructType columns, Map<String, String> properties) {
        Map<String, String> asked = of(table);
        asked.put(COLUMNS, columns.json());
        asked.put(PROPERTIES, Python.json(properties));
        return asked;
    }

    private Table created(Identifier table, Map<String, String> asked) throws TableAlreadyExistsException {
        if (Python.ask("create", asked).length() == 0) {
            throw new TableAlreadyExistsException(table);
        }
        try {
            return loadTable(table);
        } catch (NoSuchTableException gone) {
            throw new IllegalStateException("The topic was made, and is gone again: " + table, gone);
        }
    }

    @Override
    public Table alterTable(Identifier table, TableChange... changes) throws NoSuchTableException {
        Map<String, String> properties = new LinkedHashMap<>();
        for (TableChange change : changes) {
            if (change instanceof TableChange.SetProperty set) {
                properties.put(set.property(), set.value());
            } else if (change instanceof TableChange.RemoveProperty unset) {
                properties.put(unset.property(), null);
            } else {
                throw new UnsupportedOperationException("ALTER TABLE changes the properties of a topic, and no columns:"
                        + " these are its schema's. Nothing is changed. Register a new version of the schema.");
            }
        }
        Map<String, String> asked = of(table);
        asked.put(PROPERTIES, Python.json(properties));
        if (Python.ask("alter", asked).length() == 0) {
            throw new NoSuchTableException(table);
        }
        return loadTable(table);
    }

    @Override
    public boolean dropTable(Identifier table) {
        return Python.ask("drop", of(table)).length() > 0;
    }

    @Override
    public void renameTable(Identifier from, Identifier to) {
        throw new UnsupportedOperationException("Pulsar can't rename a topic. Nothing is changed.");
    }

    @Override
    public String[][] listNamespaces() {
        return names(Python.ask("tenants", options));
    }

    @Override
    public String[][] listNamespaces(String[] parent) throws NoSuchNamespaceException {
        if (parent.length == 0) {
            return listNamespaces();
        }
        if (!namespaceExists(parent)) {
            throw new NoSuchNamespaceException(parent);
        }
        return parent.length > 1 ? new String[0][] : names(Python.ask("namespaces", in(parent)));
    }

    @Override
    public Map<String, String> loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
        if (Python.ask("namespace", in(namespace)).length() == 0) {
            throw new NoSuchNamespaceException(namespace);
        }
        return Map.of();
    }

    @Override
    public void createNamespace(String[] namespace, Map<String, String> metadata) {
        throw new UnsupportedOperationException("CREATE NAMESPACE makes no namespace of Pulsar. " + NAMESPACES);
    }

    @Override
    public void alterNamespace(String[] namespace, NamespaceChange... changes) {
        throw new UnsupportedOperationException("ALTER NAMESPACE changes no namespace of Pulsar. " + NAMESPACES);
    }

    @Override
    public boolean dropNamespace(String[] namespace, boolean cascade) {
        throw new UnsupportedOperationException("DROP NAMESPACE deletes no namespace of Pulsar. " + NAMESPACES);
    }

    private static final String NAMESPACES =
            "Its policies are an administrator's. Use pulsar-admin namespaces. Nothing is changed.";

    private static String[][] names(StructType found) {
        return Arrays.stream(found.fieldNames()).map(one -> one.split("/")).toArray(String[][]::new);
    }

    private Map<String, String> in(String[] namespace) {
        Map<String, String> asked = new HashMap<>(options);
        asked.put(NAMESPACE, String.join("/", namespace));
        return asked;
    }

    private Map<String, String> of(Identifier table) {
        Map<String, String> asked = in(table.namespace());
        asked.put(TABLE, table.name());
        return asked;
    }
}
