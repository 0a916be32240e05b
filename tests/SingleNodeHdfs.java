import java.io.PrintStream;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/**
 * A NameNode and one DataNode in this process, with Hadoop's defaults. It says where it is, and ends with its input.
 * The argument: a folder for its data.
 */
public final class SingleNodeHdfs {
    private SingleNodeHdfs() {}

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // the mini cluster logs there, and nobody may be reading answers any more
        Configuration conf = new HdfsConfiguration();
        conf.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, args[0]);
        // As a NameNode is shipped: it syncs its log, which the mini cluster leaves out, and keeps it once, not twice.
        try (MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf)
                .numDataNodes(1)
                .skipFsyncForTesting(false)
                .enableManagedDfsDirsRedundancy(false)
                .build()) {
            cluster.waitActive();
            URI address = cluster.getURI();
            answers.println("ready " + address);
            System.in.transferTo(System.err);
        }
        System.exit(0); // threads that Hadoop leaves behind
    }
}
