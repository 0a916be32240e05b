package eos.bk.contract;

import eos.bk.TestCluster;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FileSystemContractBaseTest;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Disabled;
import org.junit.jupiter.api.Test;

class FileSystemContractTest extends FileSystemContractBaseTest {
    @BeforeEach
    void connect() throws Exception {
        fs = FileSystem.get(URI.create(TestCluster.uri()), TestCluster.configure(new Configuration()));
    }

    @Override
    @Test
    @Disabled("bk:// keeps no permissions: ZooKeeper's ACLs are the boundary")
    public void testMkdirsWithUmask() {}
}
