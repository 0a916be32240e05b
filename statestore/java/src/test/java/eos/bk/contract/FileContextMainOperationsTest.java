package eos.bk.contract;

import eos.bk.TestCluster;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileContextMainOperationsBaseTest;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Disabled;
import org.junit.jupiter.api.Test;

class FileContextMainOperationsTest extends FileContextMainOperationsBaseTest {
    @BeforeEach
    @Override
    public void setUp() throws Exception {
        fc = FileContext.getFileContext(TestCluster.configure(new Configuration()));
        super.setUp();
    }

    @Override
    protected Path getDefaultWorkingDirectory() {
        return fc.makeQualified(new Path("/user/" + System.getProperty("user.name")));
    }

    @Override
    protected boolean listCorruptedBlocksSupported() {
        return false;
    }

    @Override
    @Test
    @Disabled("bk:// has no append: a file is immutable once it is visible")
    public void testBuilderCreateAppendExistingFile() {}

    @Override
    @Test
    @Disabled("bk:// has no append: a file is immutable once it is visible")
    public void testCreateFlagAppendExistingFile() {}

    @Override
    @Test
    @Disabled("bk:// has no append: a file is immutable once it is visible")
    public void testCreateFlagCreateAppendExistingFile() {}

    @Override
    @Test
    @Disabled("asks for the status of a file that is still being written: bk:// shows it at close")
    public void testSetVerifyChecksum() {}
}
