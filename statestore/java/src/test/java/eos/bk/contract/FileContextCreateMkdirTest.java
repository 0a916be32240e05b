package eos.bk.contract;

import eos.bk.TestCluster;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileContextCreateMkdirBaseTest;
import org.junit.jupiter.api.BeforeEach;

class FileContextCreateMkdirTest extends FileContextCreateMkdirBaseTest {
    @BeforeEach
    @Override
    public void setUp() throws Exception {
        fc = FileContext.getFileContext(TestCluster.configure(new Configuration()));
        super.setUp();
    }
}
