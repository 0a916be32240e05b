package eos.bk;

import java.io.Closeable;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;

/**
 * A TCP proxy in front of ZooKeeper that knows a multi when it sees one, and lets something happen at the n-th: just
 * before the server gets it, or just after the server carried it out, with its answer on the way.
 */
final class ZkProxy implements Closeable {
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

    /** Counted down when it has happened. */
    final CountDownLatch happened = new CountDownLatch(1);

    private final String server;
    private final ServerSocket door = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    private final Set<Socket> open = ConcurrentHashMap.newKeySet();
    private final CountDownLatch resumed = new CountDownLatch(1);
    private final int target;
    private final When when;
    private final What what;
    private int multis;
    private volatile int awaited = Integer.MIN_VALUE;
    private volatile boolean dead;

    /** {@code target}: the number, from 1, of the multi; 0: none. */
    ZkProxy(String server, int target, When when, What what) throws IOException {
        this.server = server;
        this.target = target;
        this.when = when;
        this.what = what;
        start(() -> {
            while (!door.isClosed()) {
                Socket client = door.accept();
                if (dead) {
                    client.close();
                } else {
                    join(client);
                }
            }
        });
    }

    String address() {
        return "127.0.0.1:" + door.getLocalPort();
    }

    synchronized int multis() {
        return multis;
    }

    void resume() {
        resumed.countDown();
    }

    private void join(Socket client) throws IOException {
        String[] parts = server.split(":");
        var upstream = new Socket(parts[0], Integer.parseInt(parts[1]));
        client.setTcpNoDelay(true);
        upstream.setTcpNoDelay(true);
        open.add(client);
        open.add(upstream);
        start(() -> pump(client, upstream, true));
        start(() -> pump(upstream, client, false));
    }

    private void pump(Socket from, Socket to, boolean requests) throws IOException {
        try (from;
                to) {
            var in = new DataInputStream(from.getInputStream());
            var out = new DataOutputStream(to.getOutputStream());
            for (boolean first = true; ; first = false) {
                var frame = new byte[in.readInt()];
                in.readFully(frame);
                int xid = ByteBuffer.wrap(frame).getInt();
                boolean isMulti = requests && !first && ByteBuffer.wrap(frame).getInt(4) == MULTI;
                boolean isTarget = isMulti && count() == target;
                if (isTarget && when == When.AFTER) {
                    awaited = xid;
                }
                if ((isTarget && when == When.BEFORE) || (!requests && !first && xid == awaited)) {
                    awaited = Integer.MIN_VALUE;
                    strike();
                    if (what != What.PAUSE || dead) {
                        return;
                    }
                }
                out.writeInt(frame.length);
                out.write(frame);
                out.flush();
            }
        }
    }

    private synchronized int count() {
        return ++multis;
    }

    private void strike() throws IOException {
        if (what == What.KILL) {
            dead = true;
            for (Socket socket : open) {
                socket.close();
            }
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
        // What was held back stays back.
        dead = true;
        resume();
        door.close();
        for (Socket socket : open) {
            socket.close();
        }
    }

    private interface Task {
        void run() throws IOException;
    }

    /** Runs until a socket is closed, which is how every task here ends. */
    private static void start(Task task) {
        var thread = new Thread(() -> {
            try {
                task.run();
            } catch (IOException e) {
                // Closed.
                return;
            }
        });
        thread.setDaemon(true);
        thread.start();
    }
}
