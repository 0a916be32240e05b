package eos.bk;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;

/**
 * {@code bk://} for Hadoop's FileContext, which Spark uses for its checkpoint files (set {@code
 * fs.AbstractFileSystem.bk.impl} to this class). Same guarantees as {@link BookKeeperFileSystem}, on the same shared
 * client. A rename that overwrites is one atomic step here too, not Hadoop's default of delete, then rename.
 */
public final class Bk extends DelegateToFileSystem {
    private final BookKeeperFileSystem fs;

    /** Called by Hadoop. */
    public Bk(URI uri, Configuration conf) throws IOException, URISyntaxException {
        this(uri, new BookKeeperFileSystem(), conf);
    }

    private Bk(URI uri, BookKeeperFileSystem fs, Configuration conf) throws IOException, URISyntaxException {
        super(uri, fs, conf, fs.getScheme(), false);
        this.fs = fs;
    }

    /** Addresses without a port are names: there is no default port. */
    @Override
    public int getUriDefaultPort() {
        return -1;
    }

    @Override
    public void renameInternal(Path from, Path to) throws IOException {
        fs.rename(from, to, Options.Rename.NONE);
    }

    @Override
    public void renameInternal(Path from, Path to, boolean overwrite) throws IOException {
        fs.rename(from, to, overwrite ? Options.Rename.OVERWRITE : Options.Rename.NONE);
    }
}
