package eos.sql;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A cluster of Pulsar as a Spark catalog: tenant and namespace are the namespace of a table, the topic is the table.
 *
 * <p>Set by {@code spark.sql.catalog.NAME=eos.sql.PulsarCatalog}; every {@code spark.sql.catalog.NAME.OPTION} is an
 * option of the data source "pulsar".
 */
public final class PulsarCatalog implements TableCatalog, SupportsNamespaces {
    private static final String NAMESPACE = "catalog.namespace";
    private static final String TABLE = "catalog.table";

    private String name;
    private Map<String, String> options;

    @Override
    public void initialize(String catalog, CaseInsensitiveStringMap given) {
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

    private Table loaded(Identifier table, Map<String, String> more) throws NoSuchTableException {
        StructType found = Python.ask("table", of(table));
        if (found.length() == 0) {
            throw new NoSuchTableException(table);
        }
        Map<String, String> baked = new HashMap<>(options);
        baked.putAll(Python.texts((StructType) found.apply("options").dataType()));
        baked.putAll(more);
        return new TopicOfCatalog(
                name + "." + table, (StructType) found.apply("columns").dataType(), baked);
    }

    @Override
    public Table createTable(Identifier table, StructType columns, Transform[] partitions, Map<String, String> more) {
        throw new UnsupportedOperationException("CREATE TABLE makes no topic here. " + CREATED);
    }

    @Override
    public Table alterTable(Identifier table, TableChange... changes) {
        throw new UnsupportedOperationException("ALTER TABLE changes no topic here. Use pulsar-admin.");
    }

    @Override
    public boolean dropTable(Identifier table) {
        throw new UnsupportedOperationException("DROP TABLE deletes no topic here. Use pulsar-admin topics delete.");
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

    private static final String CREATED = "Use pulsar-admin topics create-partitioned-topic.";
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
