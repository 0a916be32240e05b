package eos.bk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The ranges of the options {@code fs.bk.…}, without any server. */
class OptionsTest {
    private static final String INTS = "a whole number from %s to 2147483647";
    private static final String LONGS = "a whole number from %s to 9223372036854775807";

    private static Settings settings(String name, String value) throws IOException {
        var conf = new Configuration(false);
        conf.set("fs.bk." + name, value);
        return new Settings(URI.create("bk://localhost:2181"), conf);
    }

    private static void refused(String name, String value, String expected) {
        var failed = assertThrows(Failed.class, () -> settings(name, value));
        assertEquals(Failed.Kind.InvalidInput.name(), failed.kind());
        assertEquals("fs.bk." + name + " is " + value + ". It must be " + expected + ".", failed.getMessage());
    }

    @ParameterizedTest
    @CsvSource({
        "session.timeout.ms, 1",
        "ensemble, 0",
        "write-quorum, 0",
        "ack-quorum, 0",
        "entry.bytes, 1",
        "window, 1",
        "pack.file.bytes, 0",
        "pack.files, 1",
        "rename.limit, 1",
    })
    void aNumberOutOfRangeIsRefusedByItsName(String name, int least) throws IOException {
        settings(name, Integer.toString(least));
        for (var value :
                new String[] {Integer.toString(least - 1), "many", "30s", "1.5", "2147483648", "99999999999999999999"
                }) {
            refused(name, value, INTS.formatted(least));
        }
    }

    @ParameterizedTest
    @CsvSource({
        "patience.ms, 1",
        "pack.bytes, 1",
        "pack.age.ms, 1",
        "cache.bytes, 0",
        "grace.ms, 0",
        "maintenance.ms, 0"
    })
    void aLongNumberOutOfRangeIsRefusedByItsName(String name, long least) throws IOException {
        settings(name, Long.toString(least));
        settings(name, Long.toString(Long.MAX_VALUE));
        for (var value : new String[] {Long.toString(least - 1), "many", "30s", "1.5", "9223372036854775808"}) {
            refused(name, value, LONGS.formatted(least));
        }
    }

    @ParameterizedTest
    @CsvSource({"-0.1", "1.1", "25%", "NaN", "many"})
    void aPartThatIsNotFromZeroToOneIsRefused(String value) {
        refused("compact.below", value, "a number from 0 to 1");
    }

    @ParameterizedTest
    @CsvSource({"sha", "crc32c"})
    void aDigestThatBookKeeperDoesNotHaveIsRefused(String value) {
        refused("digest", value, "one of [CRC32, MAC, CRC32C, DUMMY]");
    }

    @ParameterizedTest
    @CsvSource({"eos-bk", "/", "/eos-bk/", "/a//b", "/a/../b"})
    void aPathThatZooKeeperDoesNotTakeIsRefused(String value) {
        refused("root", value, "a path in ZooKeeper such as /eos-bk");
        refused("ledgers", value, "a path in ZooKeeper such as /ledgers");
    }

    @Test
    void anEntryAndAFileOfAPackHaveAMebibyteAtMost() throws IOException {
        assertEquals(Settings.MIB, settings("entry.bytes", "2147483647").entrySize);
        assertEquals(Settings.MIB, settings("pack.file.bytes", "2147483647").packFileLimit);
    }
}
