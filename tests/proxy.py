"""A real Pulsar Proxy before a broker, in a JVM of its own: the way into a cluster that the Helm chart makes."""

from __future__ import annotations

import shutil
import socket
import tempfile
import time
from pathlib import Path

from eos.closing import Closing
from eos.local import checks, jvm, process
from eos.local.jars import OPENTELEMETRY_VERSION, PULSAR_VERSION, Jars
from eos.local.jvm import QUICK_START, Jvm
from eos.local.settings import properties

PROXY_VERSION = "4.0.6"

# Not every part of each version is on Maven Central: etcd's client, which a proxy with a service URL does without,
# is left out, and what reports metrics is the broker's version.
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>eos.local</groupId>
  <artifactId>proxy</artifactId>
  <version>1</version>
  <dependencyManagement>
    <dependencies>
      <dependency>
        <groupId>io.opentelemetry</groupId>
        <artifactId>opentelemetry-bom</artifactId>
        <version>{OPENTELEMETRY_VERSION}</version>
        <type>pom</type>
        <scope>import</scope>
      </dependency>
      <dependency>
        <groupId>com.fasterxml.jackson</groupId>
        <artifactId>jackson-bom</artifactId>
        <version>2.17.2</version>
        <type>pom</type>
        <scope>import</scope>
      </dependency>
      <dependency>
        <groupId>org.apache.pulsar</groupId>
        <artifactId>pulsar-opentelemetry</artifactId>
        <version>{PULSAR_VERSION}</version>
      </dependency>
    </dependencies>
  </dependencyManagement>
  <dependencies>
    <dependency>
      <groupId>org.apache.pulsar</groupId>
      <artifactId>pulsar-proxy</artifactId>
      <version>{PROXY_VERSION}</version>
      <exclusions>
        <exclusion>
          <groupId>org.apache.pulsar</groupId>
          <artifactId>jetcd-core-shaded</artifactId>
        </exclusion>
      </exclusions>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId>
      <artifactId>log4j-slf4j2-impl</artifactId>
      <version>2.23.1</version>
    </dependency>
  </dependencies>
</project>
"""
JARS = Jars(f"Pulsar Proxy {PROXY_VERSION}", POM, about_jars=225, about_bytes=180 * checks.MEGABYTE)

_START_S = 120.0
_POLL_S = 0.1


class PulsarProxy(Closing):
    """A proxy for the time of the block.

    Attributes:
        service_url: what clients connect to, pulsar://localhost:PORT.
        admin_url: the admin API through the proxy, http://localhost:PORT.
    """

    def __init__(self, service_url: str, admin_url: str) -> None:
        """Start it before a broker, and wait until it takes connections.

        Raises:
            LocalError: Java, Maven, disk space or the network is missing, or it did not come up.
        """
        port, http = checks.pick_ports(2)
        self.service_url, self.admin_url = f"pulsar://localhost:{port}", f"http://localhost:{http}"
        self._home = Path(tempfile.mkdtemp(prefix="eos-proxy-"))
        conf = self._home / "proxy.conf"
        conf.write_text(
            properties(
                {
                    "brokerServiceURL": service_url,
                    "brokerWebServiceURL": admin_url,
                    "bindAddress": "127.0.0.1",
                    "servicePort": port,
                    "webServicePort": http,
                    "clusterName": "standalone",
                    "brokerProxyAllowedTargetPorts": "*",
                }
            )
        )
        jvm.prepare(self._home)
        machine = Jvm(checks.java(), JARS.classpath(), "256m", "256m", QUICK_START)
        line = machine.command(
            self._home, "org.apache.pulsar.proxy.server.ProxyServiceStarter", ["--config", str(conf)]
        )
        self._log = self._home / "proxy.log"
        self._started = process.start(line, {}, self._log, self._home)
        for one in (port, http):  # the latter is the last to come
            self._wait(one)

    def _wait(self, port: int) -> None:
        deadline = time.monotonic() + _START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1.0).close()
            except OSError:
                if self._started.exit_code() is not None or time.monotonic() > deadline:
                    told = jvm.last_lines(self._log)
                    self.close()
                    raise checks.LocalError(f"the proxy did not start.\n{told}") from None
                time.sleep(_POLL_S)
            else:
                return

    def close(self) -> None:
        """End it, and remove what it wrote."""
        self._started.end(0.0)
        shutil.rmtree(self._home, ignore_errors=True)
