package eos.bk;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

/** Authorities and what they signed, in one folder, as PEM files; made by the JDK's keytool. */
final class Certificates {
    private static final String PASSWORD = "of a test";

    private final Path folder;
    private final Path store;

    Certificates(Path folder) {
        this.folder = folder;
        store = folder.resolve("all.p12");
    }

    /** An authority, whose certificate is NAME.pem. */
    String authority(String name) throws Exception {
        keytool("-genkeypair", "-alias", name, "-dname", "CN=" + name, "-ext", "bc:c");
        return write(name + ".pem", List.of(open().getCertificate(name)), null);
    }

    /** A certificate with its key: {@code subject} as X.500 writes it, {@code names} and {@code more} as keytool does. */
    String signed(String name, String authority, String subject, String names, String... more) throws Exception {
        var words = new ArrayList<>(List.of("-genkeypair", "-alias", name, "-dname", subject));
        words.addAll(List.of("-ext", "san=" + names, "-signer", authority));
        words.addAll(List.of(more));
        keytool(words.toArray(new String[0]));
        var key = open().getKey(name, PASSWORD.toCharArray()).getEncoded();
        return write(name + ".pem", List.of(open().getCertificateChain(name)), key);
    }

    private void keytool(String... words) throws IOException, InterruptedException {
        var command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "keytool").toString()));
        command.addAll(List.of(words));
        command.addAll(List.of("-keyalg", "EC", "-groupname", "secp256r1", "-validity", "2"));
        command.addAll(List.of("-keystore", store.toString(), "-storetype", "PKCS12", "-storepass", PASSWORD));
        var process = new ProcessBuilder(command).redirectErrorStream(true).start();
        var said = new String(process.getInputStream().readAllBytes());
        if (process.waitFor() != 0) {
            throw new IOException(said);
        }
    }

    private KeyStore open() throws Exception {
        return KeyStore.getInstance(store.toFile(), PASSWORD.toCharArray());
    }

    private String write(String name, List<Certificate> certificates, byte[] key) throws Exception {
        var text = new StringBuilder();
        for (Certificate certificate : certificates) {
            text.append(pem("CERTIFICATE", certificate.getEncoded()));
        }
        if (key != null) {
            text.append(pem("PRIVATE KEY", key));
        }
        return Files.writeString(folder.resolve(name), text).toString();
    }

    private static String pem(String what, byte[] bytes) {
        return "-----BEGIN " + what + "-----\n"
                + Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(bytes) + "\n-----END " + what + "-----\n";
    }
}
