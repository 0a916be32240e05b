package eos.bk;

import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** A TCP proxy in front of a server. Its answers can be held back, and go on in their order when they are released. */
class TcpProxy implements Closeable {
    private final String server;
    private final ServerSocket door;
    private final Set<Socket> open = ConcurrentHashMap.newKeySet();
    private boolean held;
    private volatile boolean dead;

    TcpProxy(String server) throws IOException {
        this(server, InetAddress.getLoopbackAddress());
    }

    TcpProxy(String server, InetAddress at) throws IOException {
        this.server = server;
        door = new ServerSocket(0, 50, at);
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
        return "127.0.0.1:" + port();
    }

    int port() {
        return door.getLocalPort();
    }

    boolean isDead() {
        return dead;
    }

    /** Lets no answer through any more. */
    synchronized void hold() {
        held = true;
    }

    synchronized void release() {
        held = false;
        notifyAll();
    }

    /** Returns when something may be sent on. */
    synchronized void pass(boolean isAnswer) {
        while (isAnswer && held && !dead) {
            Zk.uninterrupted(() -> {
                wait();
                return null;
            });
        }
    }

    private void join(Socket client) throws IOException {
        String[] parts = server.split(":");
        var upstream = new Socket(parts[0], Integer.parseInt(parts[1]));
        client.setTcpNoDelay(true);
        upstream.setTcpNoDelay(true);
        open.add(client);
        open.add(upstream);
        start(() -> pump(client, upstream, false));
        start(() -> pump(upstream, client, true));
    }

    private void pump(Socket from, Socket to, boolean answers) throws IOException {
        try (from;
                to) {
            carry(from.getInputStream(), to.getOutputStream(), answers);
        }
    }

    /** Carries one direction of a connection, until it ends. */
    void carry(InputStream from, OutputStream to, boolean answers) throws IOException {
        var buffer = new byte[1 << 16];
        for (int size = from.read(buffer); size >= 0; size = from.read(buffer)) {
            pass(answers);
            to.write(buffer, 0, size);
        }
    }

    /** The server is gone: connections break, and nothing gets through any more. */
    void die() throws IOException {
        dead = true;
        release();
        for (Socket socket : open) {
            socket.close();
        }
    }

    /** What was held back stays back. */
    @Override
    public void close() throws IOException {
        door.close();
        die();
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
