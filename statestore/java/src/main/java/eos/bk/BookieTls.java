package eos.bk;

import io.netty.buffer.ByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslHandler;
import io.netty.handler.ssl.SslProvider;
import java.io.File;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import javax.net.ssl.SSLException;
import org.apache.bookkeeper.conf.AbstractConfiguration;
import org.apache.bookkeeper.conf.ClientConfiguration;
import org.apache.bookkeeper.tls.SecurityException;
import org.apache.bookkeeper.tls.SecurityHandlerFactory;

/**
 * TLS with bookies, which remembers why it failed: BookKeeper's client only logs that, and says that there are too few
 * bookies. BookKeeper makes it, by its name. Its own factory can't be loaded without BouncyCastle, which Spark lacks.
 */
public final class BookieTls implements SecurityHandlerFactory {
    private static final Map<String, String> REFUSED = new ConcurrentHashMap<>();
    private ClientConfiguration conf;
    private ByteBufAllocator allocator;

    /** Why bookies can't be spoken to now, or an empty text. */
    static String refusals() {
        return REFUSED.entrySet().stream()
                .map(one -> "; TLS with bookie " + one.getKey() + " fails: " + one.getValue())
                .collect(Collectors.joining());
    }

    static void forget() {
        REFUSED.clear();
    }

    /** With the files as they are now: made for each connection, so that renewed ones are used. */
    static SslContext context(ClientConfiguration conf) throws SSLException {
        var builder = SslContextBuilder.forClient()
                // Wherever Spark is.
                .sslProvider(SslProvider.JDK)
                .trustManager(new File(conf.getTLSTrustStore()));
        if (conf.getTLSClientAuthentication()) {
            builder.keyManager(new File(conf.getTLSCertificatePath()), new File(conf.getTLSKeyStore()));
        }
        return builder.build();
    }

    @Override
    public String getHandlerName() {
        return "tls";
    }

    @Override
    @SuppressWarnings("rawtypes") // As it is declared.
    public void init(NodeType type, AbstractConfiguration given, ByteBufAllocator memory) throws SecurityException {
        conf = (ClientConfiguration) given;
        allocator = memory;
    }

    @Override
    public SslHandler newTLSHandler() {
        throw new UnsupportedOperationException("A bookie's name is looked at");
    }

    @Override
    public SslHandler newTLSHandler(String host, int port) {
        SslHandler handler;
        try {
            handler = context(conf).newHandler(allocator, host, port);
        } catch (SSLException | IllegalArgumentException e) {
            throw new IllegalStateException(
                    "The certificates for bookies can't be used any more: " + e.getMessage(), e);
        }
        var parameters = handler.engine().getSSLParameters();
        parameters.setEndpointIdentificationAlgorithm(conf.getHostnameVerificationEnabled() ? "HTTPS" : "");
        handler.engine().setSSLParameters(parameters);
        String bookie = host + ":" + port;
        handler.handshakeFuture().addListener(done -> {
            if (done.isSuccess()) {
                listen((Channel) done.getNow(), handler, bookie);
            } else {
                REFUSED.put(bookie, Handshake.words(done.cause()));
            }
        });
        return handler;
    }

    /** In TLS 1.3 a bookie looks at our certificate after we count ourselves connected: only an answer tells. */
    private static void listen(Channel channel, SslHandler handler, String bookie) {
        String name = channel.pipeline().context(handler).name();
        channel.pipeline().addAfter(name, name + "-refused", new ChannelInboundHandlerAdapter() {
            @Override
            public void channelRead(ChannelHandlerContext context, Object answer) {
                REFUSED.remove(bookie);
                context.fireChannelRead(answer);
            }

            @Override
            public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
                if (cause.getCause() instanceof SSLException) {
                    REFUSED.put(bookie, Handshake.words(cause.getCause()));
                }
                context.fireExceptionCaught(cause);
            }
        });
    }
}
