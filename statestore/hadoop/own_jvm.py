"""A small JVM for callers without a Spark session: Java with Spark's jars and that of `bk://`, started by py4j.

It is ready after 0.7 s, where spark-submit, pyspark's own way, takes 3 s, which every command would wait for.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import threading
from collections import deque
from pathlib import Path
from typing import Any

from statestore.errors import Unavailable
from statestore.hadoop.jar import jar_path

# It is short-lived: no optimising compiler.
_JAVA_OPTIONS = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
)
_END_S = 20

_own: Any = None
_own_lock = threading.Lock()


def jvm_of_our_own() -> Any:
    """Return the JVM of this Python process, started now if need be; it ends with the process. Raises Unavailable.

    One that has died, of a lack of memory or by another's hand, is replaced.
    """
    global _own
    with _own_lock:
        if _own is not None and _own.java_process.poll() is not None:
            _own.close()
            _own = None
        if _own is None:
            _own = _launch()
            atexit.register(end_jvm, _own, _own.java_process)
        return _own.jvm


def _forget_after_fork() -> None:
    """Leave the JVM to the parent, in a forked child: it ends with the parent, and the child gets one of its own.

    Two processes on one connection would get each other's answers.
    """
    global _own, _own_lock
    _own_lock = threading.Lock()
    if _own is None:
        return
    atexit.unregister(end_jvm)
    process, client = _own.java_process, _own._gateway_client
    process.stdin.close()  # else the JVM would not see that its parent's end is closed
    process.returncode = 0  # a process of the parent's: neither waited for nor killed here
    client.is_connected = False  # objects that are dropped here stay known to the JVM
    for connection in client.deque:
        connection.stream.close()
        connection.socket.close()  # this copy alone. Its own `close` shuts the parent's too
    _own = None


os.register_at_fork(after_in_child=_forget_after_fork)


def _launch() -> Any:
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
    from pyspark.find_spark_home import _find_spark_home

    home = Path(_find_spark_home())
    # With HADOOP_CONF_DIR the file systems of a cluster are known by its own configuration.
    parts = [str(jar_path()), os.environ.get("HADOOP_CONF_DIR", ""), str(home / "jars" / "*")]
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else Path("java")
    try:
        port, token, process = launch_gateway(
            classpath=os.pathsep.join(filter(None, parts)),
            javaopts=list(_JAVA_OPTIONS),
            java_path=str(java),
            jarpath=str(next((home / "jars").glob("py4j-*.jar"), "")),
            die_on_exit=True,
            create_new_process_group=True,
            enable_auth=True,
            return_proc=True,
            # Else py4j opens /dev/null for both, and leaves it open where there is no such program.
            redirect_stdout=deque(maxlen=0),
            redirect_stderr=subprocess.DEVNULL,
        )
    except Exception as error:
        raise Unavailable(
            f"No JVM could be started with {java}: {error}. Is a JDK 17 or newer there? JAVA_HOME names it"
        ) from error
    parameters = GatewayParameters(port=port, auth_token=token, auto_convert=True)
    gateway = JavaGateway(gateway_parameters=parameters)
    gateway.set_gateway_client(_client(parameters))
    gateway.java_process = process
    return gateway


def _client(parameters: Any) -> Any:
    """Return a client of the JVM that raises Java's exceptions itself, and sends each call once.

    Without an answer py4j's own client sends a call again, which may have been carried out.

    PySpark puts a function of its own in the place of py4j's `get_return_value`, for all gateways of the process
    (pyspark.errors.exceptions.captured). It takes any exception for one of Spark's JVM, and asks that JVM for the
    object of the same number: another object, or none.
    """
    from py4j import protocol
    from py4j.java_gateway import GatewayClient

    thrown = protocol.ERROR + protocol.REFERENCE_TYPE

    class Client(GatewayClient):  # type: ignore[misc, unused-ignore]  # py4j has no types
        def send_command(self, command: str, retry: bool = True, binary: bool = False) -> Any:
            answer = super().send_command(command, False, binary)
            if not binary and answer.startswith(thrown):
                protocol.get_return_value(answer, self, "Java", "")
            return answer

    return Client(gateway_parameters=parameters)


def end_jvm(gateway: Any, process: subprocess.Popen[bytes]) -> None:
    """Let a JVM end as its standard input does, and wait for it: it seals what it has written, and closes its clients.

    Its connections are closed after it. A thread that waits at one for the JVM, as the calls of `foreachBatch` do,
    holds the lock that Python needs to close the connection.
    """
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    gateway.close()
