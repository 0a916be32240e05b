package eos.bk;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.cert.CertificateException;
import java.security.cert.CertificateExpiredException;
import java.security.cert.CertificateNotYetValidException;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocket;
import org.apache.zookeeper.client.ZKClientConfig;
import org.apache.zookeeper.common.ClientX509Util;
import org.apache.zookeeper.common.X509Exception;

/** Why TLS with a server fails, in words: the clients of ZooKeeper and BookKeeper only log it, and try for ever. */
final class Handshake {
    private static final int ANSWER_MS = 1_000;

    private Handshake() {}

    /** How ZooKeeper's client trusts and shows itself, or null where it speaks no TLS. */
    static SSLContext context(ZKClientConfig config) throws Failed {
        if (!config.getBoolean(ZKClientConfig.SECURE_CLIENT)) {
            return null;
        }
        try (var util = new ClientX509Util()) {
            return util.createSSLContext(config);
        } catch (X509Exception e) {
            throw Security.unusable("ZooKeeper", e);
        }
    }

    /** Why this server won't ever be spoken to, or null: it can be, or it doesn't answer, and may do so later. */
    static String refusal(InetSocketAddress server, SSLContext ours) {
        String host = server.getHostString();
        try (var plain = new Socket()) {
            plain.connect(new InetSocketAddress(host, server.getPort()), ANSWER_MS);
            plain.setSoTimeout(ANSWER_MS);
            SSLContext context = ours == null ? SSLContext.getDefault() : ours;
            try (var socket =
                    (SSLSocket) context.getSocketFactory().createSocket(plain, host, server.getPort(), true)) {
                // ZooKeeper's client does so whatever it is told: it is netty 4.2's default.
                var parameters = socket.getSSLParameters();
                parameters.setEndpointIdentificationAlgorithm("HTTPS");
                socket.setSSLParameters(parameters);
                return ours == null ? uninvited(socket) : refusal(socket, server);
            }
        } catch (IOException | GeneralSecurityException e) {
            return null;
        }
    }

    private static String refusal(SSLSocket socket, InetSocketAddress server) {
        try {
            socket.startHandshake();
            // In TLS 1.3 the server looks at our certificate after we count ourselves connected.
            socket.getInputStream().read();
        } catch (SocketTimeoutException e) {
            return null;
        } catch (IOException e) {
            if (isName(innermost(e)) || isCertificate(e) || alert(e) != null) {
                return words(e);
            }
            // A connection that is cut may be that of a server that starts, or of a proxy that waits for one.
            return speaksPlainly(server) ? "it answers there without TLS: is that its port for TLS?" : null;
        }
        return null;
    }

    /** For who speaks no TLS: whether this server does. Our own trust in it says nothing. */
    private static String uninvited(SSLSocket socket) {
        try {
            socket.startHandshake();
        } catch (IOException e) {
            if (!isCertificate(e) && alert(e) == null) {
                return null;
            }
        }
        return "it speaks TLS there, and this client is not told to: set fs.bk.tls and " + Security.TRUST_CERTS;
    }

    /** Asks as a person would; a ZooKeeper without TLS answers with some words, be it only that it won't tell. */
    private static boolean speaksPlainly(InetSocketAddress server) {
        try (var plain = new Socket()) {
            plain.connect(new InetSocketAddress(server.getHostString(), server.getPort()), ANSWER_MS);
            plain.setSoTimeout(ANSWER_MS);
            plain.getOutputStream().write("srvr".getBytes(StandardCharsets.US_ASCII));
            return Character.isLetter(plain.getInputStream().read());
        } catch (IOException e) {
            return false;
        }
    }

    /** What a failed handshake means, and what to do. */
    static String words(Throwable failure) {
        String said = innermost(failure);
        for (Throwable e = failure; e != null; e = e.getCause()) {
            if (e instanceof CertificateExpiredException || e instanceof CertificateNotYetValidException) {
                return "its certificate is not valid at this time (" + e.getMessage()
                        + "): renew it, or check the clock";
            }
        }
        if (alert(failure) != null) {
            return "it refuses this client (" + alert(failure)
                    + "): it may demand a client certificate, or another; see " + Security.CERTIFICATE;
        }
        if (isName(said)) {
            return "its certificate is for another host (" + said + "): the address must be one of its names";
        }
        if (isCertificate(failure)) {
            return "its certificate is not trusted (" + said + "): " + Security.TRUST_CERTS
                    + " must hold the authority that signed it";
        }
        return said;
    }

    /** What the other side said when it ended the handshake, or null. */
    private static String alert(Throwable failure) {
        for (Throwable e = failure; e != null; e = e.getCause()) {
            if (e.getMessage() != null && e.getMessage().contains("fatal alert")) {
                return e.getMessage();
            }
        }
        return null;
    }

    private static boolean isName(String said) {
        return said.startsWith("No subject alternative") || said.startsWith("No name matching");
    }

    private static boolean isCertificate(Throwable failure) {
        for (Throwable e = failure; e != null; e = e.getCause()) {
            if (e instanceof CertificateException || e instanceof GeneralSecurityException) {
                return true;
            }
        }
        return false;
    }

    static String innermost(Throwable failure) {
        Throwable e = failure;
        while (e.getCause() != null) {
            e = e.getCause();
        }
        return e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
    }
}
