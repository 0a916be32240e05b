package eos.bk;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What is said of the options of TLS and of secrets, without any server. */
class SecurityTest {
    private static final String SECRET = "pa55word";

    @ParameterizedTest
    @CsvSource({
        "tls.certificate, '-----BEGIN PRIVATE KEY-----\npa55word\n-----END PRIVATE KEY-----'",
        "tls.certificate, 'Bag Attributes\n-----BEGIN PRIVATE KEY-----\npa55word'",
        "tls.certificate, '{\"key\": \"pa55word\"}'",
        "tls.trust-certs, ' -----BEGIN CERTIFICATE-----pa55word'",
        "tls.trust-certs, 'DATA:text/plain,pa55word'",
        "zookeeper-auth, 'file:{\"digest\": \"pa55word\"}'",
        "zookeeper-auth, 'file:digest:job\npa55word'",
    })
    void aSecretInPlaceOfAPathIsRefusedAndNotShown(String name, String text) {
        var conf = new Configuration(false);
        conf.set("fs.bk.tls", "all");
        conf.set("fs.bk.tls.trust-certs", "/etc/hostname");
        conf.set("fs.bk." + name, text);
        var failed = assertThrows(Failed.class, () -> new Security(conf));
        assertTrue(failed.getMessage().contains("fs.bk." + name + " must name a file"), failed.getMessage());
        assertFalse(failed.toString().contains(SECRET), failed.toString());
    }
}
