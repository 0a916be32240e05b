package eos.bk;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import eos.bk.Names.LedgerGoneException;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import org.apache.zookeeper.Op;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Which ledgers are freed, and which are not, as long as a file, a reader or a writer needs them. */
class FreeingTest extends OwnRoot {
    @Test
    void aLedgerIsFreedWhenNothingRefersToIt() throws Exception {
        write("/d/gone", random(2 << 20));
        write("/d/kept", random(3 << 20));
        long gone = ledgerOf("/d/gone");
        client.names.delete("/d/gone", false);
        client.sweeper.sweep(false);
        assertFalse(isRegistered(gone));
        assertThrows(
                IOException.class, () -> Ledgers.await(client.session().bk().getLedgerMetadata(gone)));
        assertArrayEquals(random(3 << 20), read(client, "/d/kept"));
    }

    @Test
    void theGraceTimeProtectsReadersOfDeletedFiles() throws Exception {
        conf.setInt("fs.bk.grace.ms", 3_600_000);
        client.close();
        client = another();
        write("/d/gone", random(2 << 20));
        FileEntry file = client.names.find("/d/gone").file();
        client.names.delete("/d/gone", false);
        client.sweeper.sweep(true);
        try (var in = new BkInputStream(client, "/d/gone", file)) {
            assertArrayEquals(random(2 << 20), in.readAllBytes());
        }
    }

    /** Of a sweeper before this one, whose machine had a clock of its own: it could be years ahead, or just now set. */
    @ParameterizedTest
    @ValueSource(longs = {-3_600_000, 3_600_000, 100L * 365 * 24 * 3_600_000})
    void theGraceTimeOfALedgerWithAnotherClocksMarkEndsByZooKeepersClock(long aheadMs) throws Exception {
        write("/d/gone", random(2 << 20));
        long ledger = ledgerOf("/d/gone");
        client.names.delete("/d/gone", false);
        conf.setInt("fs.bk.grace.ms", 3_600_000);
        var patient = another();
        patient.sweeper.sweep(false);
        assertTrue(isRegistered(ledger), "the first round marks it");
        var node = client.zk.node(client.names.ledger(ledger));
        LedgerState state = LedgerState.decode(node.data());
        long marked = state.idleSince();
        assertTrue(Math.abs(marked - node.stat().getMtime()) < 60_000, "by ZooKeeper's clock");
        byte[] other = state.idle(marked + aheadMs, state.idleAt()).encode();
        client.zk.write(List.of(Op.setData(client.names.ledger(ledger), other, -1)), () -> true);
        patient.sweeper.sweep(false);
        patient.close();
        assertEquals(aheadMs > 0, isRegistered(ledger));
        client.sweeper.sweep(false);
        assertFalse(isRegistered(ledger), "its grace time counts from a round that has happened");
    }

    @Test
    void aLivePackIsNotFreedWhileItsWriterLives() throws IOException {
        write("/d/f", random(10));
        long pack = ledgerOf("/d/f");
        client.names.delete("/d/f", false);
        var other = another();
        other.sweeper.sweep(true);
        assertTrue(isRegistered(pack));
        other.close();
    }

    @Test
    void aDeadWritersPackIsClosedAndFreed() throws IOException {
        write("/d/f", random(10));
        write("/d/g", random(10));
        long pack = ledgerOf("/d/f");
        var dead = client.session();
        client = another();
        Zk.uninterrupted(() -> {
            dead.zk().close();
            return null;
        });
        client.sweeper.sweep(true);
        assertArrayEquals(random(10), read(client, "/d/f"));
        client.names.delete("/d/f", false);
        client.sweeper.sweep(true);
        assertTrue(isRegistered(pack), "another file still refers to it");
        client.names.delete("/d/g", false);
        client.sweeper.sweep(true);
        assertFalse(isRegistered(pack));
    }

    @Test
    void aLatePublisherWhoseLedgerWasFreedWritesItsBytesAgain() throws IOException {
        client.unnamed.close(TEMPORARY, random(10), false);
        long pack = client.unnamed.find(TEMPORARY).file().ledger();
        retirePacks();
        client.sweeper.sweep(false);
        assertFalse(isRegistered(pack));
        var late = client.unnamed.find(TEMPORARY).file();
        assertThrows(LedgerGoneException.class, () -> client.names.publish("/d/late", late, false));
        client.unnamed.rename(TEMPORARY, "/d/1", false);
        assertArrayEquals(random(10), read(client, "/d/1"));
    }

    @Test
    void aSparsePackIsCompactedUnderAnOpenReader() throws Exception {
        for (int i = 0; i < 10; i++) {
            write("/d/" + i, random(100 + i));
        }
        long pack = ledgerOf("/d/0");
        var open = new BkInputStream(client, "/d/0", client.names.find("/d/0").file());
        for (int i = 1; i < 10; i++) {
            client.names.delete("/d/" + i, false);
        }
        retirePacks();
        client.compactor.compact(System.currentTimeMillis());
        assertNotEquals(pack, ledgerOf("/d/0"));
        client.sweeper.sweep(false);
        assertFalse(isRegistered(pack));
        assertArrayEquals(random(100), open.readAllBytes());
        var other = another();
        assertArrayEquals(random(100), read(other, "/d/0"));
        other.close();
    }

    /** By an operator's command, say, whose options are others. */
    @Test
    void aFileIsReadOnWhenAClientWithLargerEntriesHasMovedIt() throws IOException {
        conf.setInt("fs.bk.entry.bytes", 60);
        conf.setInt("fs.bk.cache.bytes", 0);
        var small = another();
        for (int i = 0; i < 9; i++) {
            TestTree.write(small, "/d/" + i, random(100));
        }
        var open = new BkInputStream(small, "/d/0", small.names.find("/d/0").file());
        assertEquals(random(100)[0] & 0xff, open.read());
        for (int i = 1; i < 9; i++) {
            small.names.delete("/d/" + i, false);
        }
        small.packs.close();
        write("/d/other", random(100));
        client.compactor.compact(System.currentTimeMillis());
        client.sweeper.sweep(false);
        byte[] rest = open.readAllBytes();
        assertArrayEquals(Arrays.copyOfRange(random(100), 1, 100), rest);
        small.close();
    }

    @Test
    void unregisteredLedgersOfDeadWritersAreFound() throws Exception {
        var dead = another();
        long ledger = dead.ledgers.create(dead.session()).getId();
        dead.zk.write(List.of(Op.delete(dead.names.ledger(ledger), -1)), () -> true);
        client.sweeper.sweep(true);
        assertNotNull(Ledgers.await(client.session().bk().getLedgerMetadata(ledger)));
        dead.close();
        client.sweeper.sweep(true);
        assertThrows(
                IOException.class, () -> Ledgers.await(client.session().bk().getLedgerMetadata(ledger)));
    }
}
