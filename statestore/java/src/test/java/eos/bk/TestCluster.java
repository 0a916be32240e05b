package eos.bk;

import java.util.UUID;
import org.apache.hadoop.conf.Configuration;

/** The cluster that tests run on, and options for a root of their own in it. */
public final class TestCluster {
  private static final String ROOT = "/eos-bk-test/" + UUID.randomUUID();

  private TestCluster() {}

  /** {@code host:port} of its ZooKeeper. */
  public static String address() {
    return System.getProperty("bk.address");
  }

  /** The file system's address. */
  public static String uri() {
    return "bk://" + address();
  }

  /** Options of a file system with this JVM's root. */
  public static Configuration configure(Configuration conf) {
    conf.set("fs.defaultFS", uri());
    conf.set("fs.bk.impl", BookKeeperFileSystem.class.getName());
    conf.set("fs.AbstractFileSystem.bk.impl", Bk.class.getName());
    conf.set("fs.bk.root", ROOT);
    return conf;
  }
}
