package eos.bk.contract;

import eos.bk.TestCluster;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.contract.AbstractFSContract;

/** Tells Hadoop's contract suites what bk:// offers (contract/bk.xml) and where it is. */
final class BkContract extends AbstractFSContract {
    BkContract(Configuration conf) {
        super(TestCluster.configure(conf));
        addConfResource("contract/bk.xml");
    }

    @Override
    public FileSystem getTestFileSystem() throws IOException {
        return FileSystem.get(java.net.URI.create(TestCluster.uri()), getConf());
    }

    @Override
    public String getScheme() {
        return "bk";
    }

    @Override
    public Path getTestPath() {
        return new Path(TestCluster.uri() + "/contract");
    }
}
