package eos.bk;

import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;

/** Paths as ZooKeeper takes them: what it forbids is percent-encoded. */
final class Percent {
    /** Control characters, surrogates, private use, specials, the names "." and "..", and the percent sign. */
    private static final Pattern FORBIDDEN = Pattern.compile(
            "[%\\x00-\\x1f\\x7f-\\x9f\\x{d800}-\\x{f8ff}\\x{fff0}-\\x{10ffff}]" + "|(?<=/|^)\\.\\.?(?=/|$)");

    private Percent() {}

    static String encode(String path) {
        return FORBIDDEN.matcher(path).replaceAll(found -> URLEncoder.encode(found.group(), StandardCharsets.UTF_8)
                .replace(".", "%2E"));
    }

    static String decode(String name) {
        return name.indexOf('%') < 0 ? name : URLDecoder.decode(name.replace("+", "%2B"), StandardCharsets.UTF_8);
    }
}
