/**
 * Pulsar's topics as tables of a Spark catalog.
 *
 * <p>Spark takes a catalog only as a class of the JVM, so this is Java. It holds no protocol, asks no admin API and maps
 * no schema: each question goes to the Python package {@code eos.sql} ({@link eos.sql.Python}), and each table is
 * Spark's own table of the Python data source "pulsar", with the options of the catalog.
 */
package eos.sql;
