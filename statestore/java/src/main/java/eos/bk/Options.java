package eos.bk;

import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.zookeeper.common.PathUtils;

/** Reads the options {@code fs.bk.…} of Hadoop's configuration, and refuses by its name one that is out of range. */
final class Options {
    static final String PREFIX = "fs.bk.";

    private final Configuration conf;

    Options(Configuration conf) {
        this.conf = conf;
    }

    /** A whole number from {@code least} to the largest int. */
    int number(String name, int usual, int least) throws Failed {
        return Math.toIntExact(number(name, usual, least, Integer.MAX_VALUE));
    }

    /** A whole number from {@code least} to the largest long. */
    long number(String name, long usual, long least) throws Failed {
        return number(name, usual, least, Long.MAX_VALUE);
    }

    /** A part of one, from 0 to 1. */
    double part(String name, double usual) throws Failed {
        try {
            double value = conf.getDouble(PREFIX + name, usual);
            if (value >= 0 && value <= 1) { // not so for NaN
                return value;
            }
        } catch (NumberFormatException refusedBelow) {
        }
        throw refused(name, "a number from 0 to 1");
    }

    /** One of the names of an enumeration. */
    <E extends Enum<E>> E oneOf(String name, E usual) throws Failed {
        var given = conf.getTrimmed(PREFIX + name, usual.name());
        for (var one : usual.getDeclaringClass().getEnumConstants()) {
            if (one.name().equals(given)) {
                return one;
            }
        }
        throw refused(
                name, "one of " + Arrays.toString(usual.getDeclaringClass().getEnumConstants()));
    }

    /** A path of ZooKeeper's below its root. */
    String path(String name, String usual) throws Failed {
        var given = conf.getTrimmed(PREFIX + name, usual);
        try {
            PathUtils.validatePath(given);
            if (given.length() > 1) {
                return given;
            }
        } catch (IllegalArgumentException refusedBelow) {
        }
        throw refused(name, "a path in ZooKeeper such as " + usual);
    }

    private long number(String name, long usual, long least, long most) throws Failed {
        try {
            long value = conf.getLong(PREFIX + name, usual);
            if (value >= least && value <= most) {
                return value;
            }
        } catch (NumberFormatException refusedBelow) {
        }
        throw refused(name, "a whole number from " + least + " to " + most);
    }

    private Failed refused(String name, String expected) {
        return new Failed(
                Failed.Kind.InvalidInput,
                PREFIX + name + " is " + conf.getTrimmed(PREFIX + name) + ". It must be " + expected + ".");
    }
}
