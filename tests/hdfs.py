"""A real HDFS on one node, from Hadoop's own mini cluster, in a JVM of its own."""

from __future__ import annotations

from pathlib import Path

from eos.local import checks
from eos.local.jars import Jars
from eos.local.places import Tell, quiet
from tests.java_peer import JavaPeer

HADOOP_VERSION = "3.5.0"  # that of the client in Spark 4.3
SOURCE = Path(__file__).with_name("SingleNodeHdfs.java")

# The mini cluster is made of Hadoop's tests, and loads Mockito without depending on it.
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>eos.local</groupId>
  <artifactId>hdfs</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.hadoop</groupId>
      <artifactId>hadoop-minicluster</artifactId>
      <version>{HADOOP_VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.mockito</groupId>
      <artifactId>mockito-core</artifactId>
      <version>4.11.0</version>
    </dependency>
  </dependencies>
</project>
"""
JARS = Jars(f"Hadoop minicluster {HADOOP_VERSION}", POM, about_jars=200, about_bytes=150 * checks.MEGABYTE)


# The mini cluster would tell of every call.
LOGGING = """log4j.rootLogger=WARN, log
log4j.appender.log=org.apache.log4j.ConsoleAppender
log4j.appender.log.target=System.err
log4j.appender.log.layout=org.apache.log4j.PatternLayout
log4j.appender.log.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""


class SingleNodeHdfs(JavaPeer):
    """An HDFS for the time of the block.

    Attributes:
        uri: its root, hdfs://localhost:PORT.
    """

    def __init__(self, folder: Path, tell: Tell = quiet) -> None:
        """Start it and wait until it answers; its data and its log go into `folder`.

        Raises:
            LocalError: Java, Maven, disk space or the network is missing.
        """
        logging = folder / "log4j.properties"
        logging.write_text(LOGGING)
        flags = ("-Xmx1g", f"-Dlog4j.configuration={logging.as_uri()}")
        super().__init__(SOURCE, folder, JARS.classpath(tell), (str(folder / "hdfs"),), flags)
        self.uri = self.answer("ready")
