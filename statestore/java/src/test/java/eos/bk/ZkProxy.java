package eos.bk;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/**
 * A TCP proxy in front of ZooKeeper that knows a multi when it sees one, and lets something happen at the n-th: just
 * before the server gets it, or just after the server carried it out, with its answer on the way.
 */
final class ZkProxy extends TcpProxy {
    private static final int SYNC = 9;
    private static final int MULTI = 14;

    enum When {
        BEFORE,
        AFTER
    }

    enum What {
        /** The connection breaks; the client may come back. */
        CUT,
        /** The client's machine is gone: nothing gets through any more. */
        KILL,
        /** The client's machine stands still, until {@link #resume}. */
        PAUSE
    }

    private static final long MOST_S = 300;
    private static final long LOOK_MS = 20;

    private final CountDownLatch happened = new CountDownLatch(1);
    private final CountDownLatch resumed = new CountDownLatch(1);
    private final int target;
    private final When when;
    private final What what;
    private int multis;
    private int syncs;
    private volatile int awaited = Integer.MIN_VALUE;

    /** Nothing happens at any multi. */
    ZkProxy(String server) throws IOException {
        this(server, 0, When.BEFORE, What.CUT);
    }

    /** {@code target}: the number, from 1, of the multi. */
    ZkProxy(String server, int target, When when, What what) throws IOException {
        super(server);
        this.target = target;
        this.when = when;
        this.what = what;
    }

    synchronized int multis() {
        return multis;
    }

    /** How often a client had to ask ZooKeeper's leader. */
    synchronized int asked() {
        return multis + syncs;
    }

    boolean hasHappened() {
        return happened.getCount() == 0;
    }

    /** Waits until it happens; fails once who was to send that multi is done without it. */
    void awaitIt(BooleanSupplier isDone) throws InterruptedException {
        boolean done = false;
        for (long begun = System.nanoTime();
                !happened.await(LOOK_MS, TimeUnit.MILLISECONDS);
                done = isDone.getAsBoolean()) {
            if (done || System.nanoTime() - begun > TimeUnit.SECONDS.toNanos(MOST_S)) {
                throw new AssertionError(what + " " + when + " multi " + target + ": only " + multis() + " were sent");
            }
        }
    }

    void resume() {
        resumed.countDown();
    }

    @Override
    void carry(InputStream from, OutputStream to, boolean answers) throws IOException {
        var in = new DataInputStream(from);
        var out = new DataOutputStream(to);
        for (boolean first = true; ; first = false) {
            var frame = new byte[in.readInt()];
            in.readFully(frame);
            int xid = ByteBuffer.wrap(frame).getInt();
            boolean isTarget =
                    !answers && !first && isTarget(ByteBuffer.wrap(frame).getInt(4));
            if (isTarget && when == When.AFTER) {
                awaited = xid;
            }
            if ((isTarget && when == When.BEFORE) || (answers && !first && xid == awaited)) {
                awaited = Integer.MIN_VALUE;
                strike();
                if (what != What.PAUSE || isDead()) {
                    return;
                }
            }
            pass(answers);
            out.writeInt(frame.length);
            out.write(frame);
            out.flush();
        }
    }

    private synchronized boolean isTarget(int operation) {
        syncs += operation == SYNC ? 1 : 0;
        multis += operation == MULTI ? 1 : 0;
        return operation == MULTI && multis == target;
    }

    private void strike() throws IOException {
        if (what == What.KILL) {
            die();
        }
        happened.countDown();
        if (what == What.PAUSE) {
            Zk.uninterrupted(() -> {
                resumed.await();
                return null;
            });
        }
    }

    @Override
    public void close() throws IOException {
        super.close();
        resume();
    }
}
