package eos.sql;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The Python data source "pulsar", as the driver's JVM reaches it.
 *
 * <p>Spark runs {@code DataSource.schema()} in a Python process on the driver when a schema is inferred. No other call
 * reaches Python without a Spark job. So a question of the catalog is an option of the source, and the answer is its
 * schema: a column for each thing found, with its text as the column's comment. A refusal is marked in a column's metadata,
 * which hold no name of a topic or property. {@code eos/sql/answers.py} has the other side.
 */
final class Python {
    static final String NAME = "pulsar";
    private static final String QUESTION = "catalog.question";
    private static final String REFUSED = "refused";

    private Python() {}

    /**
     * Return if Spark has sources in Python: 3.5 would end with NoClassDefFoundError at the first question.
     *
     * @throws UnsupportedOperationException it has none; the message ends with what to do instead
     */
    static void require(String instead) {
        try {
            Class.forName(
                    "org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2",
                    false,
                    Python.class.getClassLoader());
        } catch (ClassNotFoundException error) {
            throw new UnsupportedOperationException(
                    "The catalog needs data sources that are written in Python, and this Spark lacks it."
                            + " It came with 4.0. " + instead + ". foreachBatch(eos.sink(…)) needs none.",
                    error);
        }
    }

    /**
     * Ask. The options are the catalog's, with what the question is about.
     *
     * @throws IllegalArgumentException Python refuses the question; the message is Python's
     */
    static StructType ask(String question, Map<String, String> options) {
        Map<String, String> all = new HashMap<>(options);
        all.put(QUESTION, question);
        StructType answer = inferred(all);
        for (StructField field : answer.fields()) {
            if (field.metadata().contains(REFUSED)) {
                throw new IllegalArgumentException(field.metadata().getString(REFUSED));
            }
        }
        return answer;
    }

    private static StructType inferred(Map<String, String> options) {
        try {
            return source().inferSchema(new CaseInsensitiveStringMap(options));
        } catch (Exception error) {
            if (String.valueOf(error.getMessage()).contains("DATA_SOURCE_NOT_EXIST")) {
                throw new IllegalStateException(
                        "Spark finds no Python data source \"pulsar\", by which the catalog reaches Pulsar. Set"
                                + " PYSPARK_PYTHON to a Python that has this package, before Spark starts. Or call"
                                + " eos.register(spark).",
                        error);
            }
            throw error;
        }
    }

    /** Texts by name, as {@link #texts} takes them apart; a name without a text has no comment. */
    static String json(Map<String, String> texts) {
        StructType fields = new StructType();
        for (Map.Entry<String, String> text : texts.entrySet()) {
            fields = text.getValue() == null
                    ? fields.add(text.getKey(), DataTypes.StringType)
                    : fields.add(text.getKey(), DataTypes.StringType, true, text.getValue());
        }
        return fields.json();
    }

    /** The texts of an answer, or of a part of one, by name and in order. */
    static Map<String, String> texts(StructType answer) {
        Map<String, String> found = new LinkedHashMap<>();
        for (StructField field : answer.fields()) {
            found.put(field.name(), text(field));
        }
        return found;
    }

    static PythonDataSourceV2 source() {
        PythonDataSourceV2 source = new PythonDataSourceV2();
        source.setShortName(NAME);
        return source;
    }

    /** Spark's own table of a source. */
    static Table table(PythonDataSourceV2 source, StructType columns, Map<String, String> options) {
        return source.getTable(columns, new Transform[0], options);
    }

    private static String text(StructField field) {
        return field.getComment().getOrElse(() -> "");
    }
}
