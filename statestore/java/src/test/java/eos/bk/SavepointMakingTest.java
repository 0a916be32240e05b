package eos.bk;

import static eos.bk.SavepointsTest.FILES;
import static eos.bk.SavepointsTest.SOURCE;
import static eos.bk.SavepointsTest.create;
import static eos.bk.SavepointsTest.mustBeWhole;
import static eos.bk.SavepointsTest.refused;
import static eos.bk.SavepointsTest.states;
import static eos.bk.SavepointsTest.written;
import static eos.bk.TestTree.write;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.node.ObjectNode;
import eos.bk.Failed.Kind;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.Op;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a savepoint takes of the files that were chosen for it, and the order in which savepoints were made. */
class SavepointMakingTest extends SavepointFixture {
    @ParameterizedTest
    @ValueSource(strings = {"metadata", "state/0/0/1.delta", "state/0/0/ü 50%"})
    void aFileThatWasReplacedSinceItWasChosenAsksForANewerCutAndLeavesNothing(String replaced) throws IOException {
        Map<String, Long> chosen = written(all, "/q", FILES.keySet());
        do {
            write(client, "/q/" + replaced, FILES.get(replaced));
        } while (written(all, "/q", List.of(replaced)).get(replaced).equals(chosen.get(replaced)));
        refused(
                Kind.CutFailed,
                "Batch 0 can't be held: " + replaced + " was replaced at ",
                () -> all.create("one", SOURCE, "/q", 0, "a-query", chosen));
        assertEquals(List.of(), states(all));
        assertTrue(create(all, "one").isReady());
    }

    @ParameterizedTest
    @ValueSource(strings = {"ar-EG", "fa", "tr"})
    void whatAJvmOfOneLanguageMadeIsReadByOneOfAnother(String language) throws IOException {
        Locale before = Locale.getDefault();
        Locale.setDefault(Locale.forLanguageTag(language));
        try {
            create(all, "one");
        } finally {
            Locale.setDefault(before);
        }
        all.restore("one", "/new").finish();
        mustBeWhole(client, "/new");
    }

    @Test
    void aFileThatWasCompactedSinceItWasChosenIsTheSame() throws IOException {
        Map<String, Long> chosen = written(all, "/q", FILES.keySet());
        FileEntry old = client.names.find("/q/metadata").file();
        FileEntry copy = client.packs.append("/q/metadata", FILES.get("metadata"), old.entrySize());
        assertTrue(client.names.replace("/q/metadata", old, old.copiedTo(copy, chosen.get("metadata"))));
        assertTrue(all.create("one", SOURCE, "/q", 0, "a-query", chosen).isReady());
    }

    @Test
    void theyAreInTheOrderOfTheirMakingWhateverTheClocksOfTheirMakersSay() throws IOException {
        Savepoint ahead = create(all, "z");
        var record = Json.MAPPER.readTree(ahead.encode());
        long tomorrow = ahead.createdMs() + TimeUnit.DAYS.toMillis(1);
        ((ObjectNode) record).put("created_ms", tomorrow);
        byte[] said = Json.write(record).getBytes(StandardCharsets.UTF_8);
        assertTrue(client.zk.write(List.of(Op.setData(all.path("z"), said, -1)), () -> true));
        create(all, "m");
        create(all, "a");
        assertEquals(tomorrow, all.read("z").savepoint().createdMs());
        assertEquals(List.of("z ready", "m ready", "a ready"), states(all));
    }
}
