"""Hadoop's file systems from Python: through the JVM of the active Spark session, or a small JVM of this process."""

from __future__ import annotations

import json
import logging
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from eos.spark.jar import FILE_SYSTEM
from statestore.errors import InvalidInput, NotFound, Unavailable
from statestore.hadoop.error_translation import explain
from statestore.hadoop.options import OPTIONS, PREFIX, checked
from statestore.hadoop.own_jvm import jvm_of_our_own
from statestore.hadoop.session import HADOOP, context_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("statestore.hadoop")

_IMPLEMENTATIONS = {name.removeprefix(HADOOP): value for name, value in FILE_SYSTEM.items()}
# Between us and the jar: who only looks begins no tree of names.
_MAKE_ROOT = f"{PREFIX}make-root"
_PATIENCE = "patience.ms"
# A tool leaves the housekeeping to the jobs, and a person waits for its answer.
_TOOL = {f"{PREFIX}maintenance.ms": "0", f"{PREFIX}{_PATIENCE}": "30000"}
_HOPELESS_MS = 3_000
_SILENT_S = 2.0
_BLOCK = 1 << 20
_ROOT = re.compile(r"[^:/]+://[^/]+")
_ABORTABLE = "fs.capability.outputstream.abortable"
_NO_FILE_CONTEXT = "org.apache.hadoop.fs.UnsupportedFileSystemException"

# By JVM: the file systems that were made for options of ours, by scheme, authority and options.
_instances: WeakKeyDictionary[Any, dict[tuple[tuple[str, str], frozenset[tuple[str, str]]], Any]] = WeakKeyDictionary()
_instances_lock = threading.Lock()

Progress = Callable[[int], None]
"""Called with the bytes of each file that has been copied."""


@dataclass(frozen=True, slots=True)
class Status:
    """A file or directory.

    Attributes:
        uri: the whole address; path: without scheme and authority; name: its last part.
        length: bytes; 0 for a directory.
        mtime_ms: of the last change, milliseconds since the epoch.
    """

    uri: str
    path: str
    name: str
    length: int
    mtime_ms: int
    is_directory: bool


class Hadoop:
    """Files of any scheme that Hadoop knows. Safe for several threads at once.

    Every method raises `NotFound` where nothing is at the address, `InvalidInput` for what is refused, `Damaged` for
    bytes that fail their checksum, and `Unavailable` for all else that a file system says.
    """

    def __init__(self, jvm: Any, conf: Any, own_instances: bool, for_tools: bool) -> None:
        self.jvm = jvm
        self._conf = conf
        self._own_instances = own_instances
        self._for_tools = for_tools
        self._file_systems: dict[tuple[str, str], Any] = {}
        self._lock = threading.Lock()

    @classmethod
    def of(
        cls,
        spark: SparkSession | None = None,
        options: Mapping[str, object] | None = None,
        *,
        make_root: bool = True,
        own_jvm: bool = False,
    ) -> Hadoop:
        """Return access through a JVM that has `bk://`.

        Args:
            spark: whose JVM and Hadoop configuration to use. None: the active Spark context's, if it knows `bk://`.
                Else an own JVM, one for each Python process, which ends with it.
            options: Hadoop options `fs.bk.…`. With options the file systems are the caller's own instances, since
                Hadoop otherwise gives out those that were made first, with their options.
            make_root: False: in an own JVM, an address in whose tree no file was ever written is refused.
            own_jvm: start an own JVM also where a Spark context is active, as a command does.

        Raises:
            InvalidInput: an option is wrong, or `spark` was made without `configure_spark`.
            Unavailable: no JVM could be started.
        """
        given = checked(options or {})
        context = context_of(spark)
        for_tools = context is None or own_jvm
        if for_tools:
            given = _TOOL | given | ({} if make_root else {_MAKE_ROOT: "false"})
        jvm = jvm_of_our_own() if for_tools else context._jvm
        with _answering("Hadoop"):
            base = () if for_tools else (context._jsc.hadoopConfiguration(),)
            conf = jvm.org.apache.hadoop.conf.Configuration(*base)
            for name, value in (_IMPLEMENTATIONS | given).items():
                conf.set(name, value)
        return cls(jvm, conf, own_instances=bool(given), for_tools=for_tools)

    def file_system(self, uri: str) -> Any:
        """Return Hadoop's FileSystem for an address, a Java object."""
        with self.explained(uri):
            path = self.jvm.org.apache.hadoop.fs.Path(uri)
            where = path.toUri()
            key = (str(where.getScheme() or ""), str(where.getAuthority() or ""))
            with self._lock:
                if key not in self._file_systems:
                    file_systems = self.jvm.org.apache.hadoop.fs.FileSystem
                    if not key[0]:
                        where = file_systems.getDefaultUri(self._conf)
                    if self._own_instances and key[0] == "bk":
                        made = self._own_instance(where, key)
                    else:
                        made = file_systems.get(where, self._conf)
                    if self._for_tools and key[0] == "bk":
                        self._connect(made, uri)
                    self._file_systems[key] = made
                return self._file_systems[key]

    def _own_instance(self, where: Any, key: tuple[str, str]) -> Any:
        """An instance for these options, made once in a JVM: Hadoop keeps each until it is closed, with its options."""
        options = frozenset(self._options().items())
        with _instances_lock:
            made = _instances.setdefault(self.jvm, {})
            if (key, options) not in made:
                made[key, options] = self.jvm.org.apache.hadoop.fs.FileSystem.newInstance(where, self._conf)
            return made[key, options]

    def connect(self, uri: str) -> None:
        """Connect to the ZooKeeper of a `bk://` address, unless this process is. In an own JVM the first use does.

        Where none can be, since nobody knows the host, or all servers refuse connections for some seconds, it says so
        soon. For another the call waits as `fs.bk.patience.ms` says, and a warning of `statestore.hadoop` tells of it.
        """
        with self.explained(uri):
            self._connect(self.file_system(uri), uri)

    def _connect(self, file_system: Any, uri: str) -> None:
        patience_ms = self._conf.get(PREFIX + _PATIENCE, OPTIONS[_PATIENCE].default)
        said = "%s: its ZooKeeper does not answer yet; waiting for up to %d s"
        waiting = threading.Timer(_SILENT_S, log.warning, (said, uri, int(patience_ms) // 1000))
        waiting.daemon = True
        waiting.start()
        try:
            self.jvm.eos.bk.Maintenance.connect(file_system, _HOPELESS_MS)
        finally:
            waiting.cancel()

    @property
    def options(self) -> dict[str, str]:
        """The options `fs.bk.…` in force: those given, and those of the Spark session."""
        with self.explained("Options of bk://"):
            found = self._options()
        return {name: value for name, value in found.items() if name not in {*_IMPLEMENTATIONS, _MAKE_ROOT}}

    def _options(self) -> dict[str, str]:
        return {PREFIX + str(name): str(value) for name, value in self._conf.getPropsWithPrefix(PREFIX).items()}

    def status(self, uri: str) -> Status | None:
        """Return what is at the address; None where nothing is."""
        try:
            with self.explained(uri):
                return _status(self.file_system(uri).getFileStatus(self._path(uri)))
        except NotFound:
            return None

    def list(self, uri: str) -> list[Status]:
        """Return what is in a directory, by name; for a file, the file itself."""
        with self.explained(uri):
            said = self.jvm.eos.bk.Look.list(self.file_system(uri), self._path(uri))
        return sorted((Status(**one) for one in json.loads(said)), key=lambda status: status.name)

    def walk(self, uri: str) -> Iterator[Status]:
        """Return all files at or below an address. Not a cut: files may come and go meanwhile."""
        for status in self.list(uri):
            if status.is_directory:
                yield from self.walk(status.uri)
            else:
                yield status

    def read(self, uri: str) -> bytes:
        """Return a file's bytes; they must fit into memory, twice."""
        return b"".join(self.blocks(uri))

    def blocks(self, uri: str) -> Iterator[bytes]:
        """Yield a file's bytes in blocks of 1 MiB, for files of any length."""
        with self.explained(uri):
            stream = self.file_system(uri).open(self._path(uri))
            try:
                came = 0
                while True:
                    block = bytes(stream.readNBytes(_BLOCK))
                    came += len(block)
                    _must_stand_at(came, stream, uri)
                    if block:
                        yield block
                    if len(block) < _BLOCK:
                        return
            finally:
                stream.close()

    def write(self, uri: str, data: bytes, overwrite: bool = False) -> None:
        """Write a file; directories above it are made. A file that exists is refused unless `overwrite`."""
        with self.explained(uri):
            stream = self.file_system(uri).create(self._path(uri), overwrite)
            try:
                for at in range(0, len(data), _BLOCK):
                    block = bytearray(memoryview(data)[at : at + _BLOCK])
                    stream.write(block)
                    _must_stand_at(at + len(block), stream, uri)
                stream.close()
            except BaseException:
                self._discard(stream, uri)
                raise

    def replace(self, uri: str, data: bytes) -> None:
        """Write a file whole, in place of the one that may be there: a reader sees the old bytes or the new.

        As Spark does with its own files, it goes by Hadoop's FileContext, and by the FileSystem where there is no
        AbstractFileSystem for the scheme. If that one does not rename over a file, there is none for a moment.
        """
        from py4j.protocol import Py4JJavaError

        folder, _, name = uri.rpartition("/")
        scratch = f"{folder}/.{name}.{uuid.uuid4().hex[:12]}.tmp"
        self.write(scratch, data)
        with self.explained(uri):
            jvm = self.jvm
            try:
                context = jvm.org.apache.hadoop.fs.FileContext.getFileContext(self._path(uri).toUri(), self._conf)
            except Py4JJavaError as error:
                if error.java_exception.getClass().getName() != _NO_FILE_CONTEXT:
                    raise
                self._replace_by_file_system(uri, scratch)
                return
            rename = jvm.org.apache.hadoop.fs.Options.Rename
            choices = jvm.java.lang.reflect.Array.newInstance(rename.OVERWRITE.getClass(), 1)
            choices[0] = rename.OVERWRITE
            context.rename(self._path(scratch), self._path(uri), choices)

    def _replace_by_file_system(self, uri: str, scratch: str) -> None:
        file_system = self.file_system(uri)
        if file_system.rename(self._path(scratch), self._path(uri)):
            return
        file_system.delete(self._path(uri), False)
        if not file_system.rename(self._path(scratch), self._path(uri)):
            raise Unavailable(f"{uri}: the file system does not put {scratch} in its place. Rename it by hand.")

    def copy(self, source: str, target: str, progress: Progress | None = None) -> int:
        """Copy a file, or a directory with all below it; return the bytes. A target that exists is refused.

        A copy that fails leaves no half-written file.
        """
        status = self.status(source)
        if status is None:
            raise NotFound(f"{source} does not exist")
        if self.status(target) is not None:
            raise InvalidInput(f"{target} exists already. Name another target, or delete it first")
        if not status.is_directory:
            return self._copy_file(status, target, progress)
        if self.qualified(target).startswith(f"{self.qualified(source).rstrip('/')}/"):
            raise InvalidInput(f"{target} is inside {source}. Name a target outside it")
        self.make_directories(target)
        return sum(self.copy(one.uri, f"{target.rstrip('/')}/{one.name}", progress) for one in self.list(source))

    def delete(self, uri: str, recursive: bool = False) -> bool:
        """Delete a file or directory; False where nothing was. A directory that isn't empty needs `recursive`."""
        if not recursive:
            status = self.status(uri)
            if status is not None and status.is_directory and self.list(uri):
                raise InvalidInput(f"{uri} is a directory that is not empty. Delete it with all below it (recursive)")
        with self.explained(uri):
            return bool(self.file_system(uri).delete(self._path(uri), recursive))

    def rename(self, source: str, target: str) -> None:
        """Rename within one file system; a target that exists is refused."""
        if self.status(source) is None:
            raise NotFound(f"{source} does not exist")
        if self.status(target) is not None:
            raise InvalidInput(f"{target} exists already. Name another target, or delete it first")
        with self.explained(target):
            done = self.file_system(source).rename(self._path(source), self._path(target))
        if not done:
            raise InvalidInput(f"{source} can't be renamed to {target}: is there a folder above the target?")

    def qualified(self, uri: str) -> str:
        """Return an address with scheme and authority: those of the default file system where it has none."""
        with self.explained(uri):
            return str(self.file_system(uri).makeQualified(self._path(uri)).toString())

    def make_directories(self, uri: str) -> None:
        """Make a directory and those above it."""
        with self.explained(uri):
            self.file_system(uri).mkdirs(self._path(uri))

    def _copy_file(self, source: Status, target: str, progress: Progress | None) -> int:
        with self.explained(target):
            given = self.file_system(source.uri).open(self._path(source.uri))
            try:
                # Refused, like `close`, where another has put a file there by now, which must stay.
                made = self.file_system(target).create(self._path(target), False)
                try:
                    self.jvm.org.apache.hadoop.io.IOUtils.copyBytes(given, made, self._conf, False)
                    made.close()
                except BaseException:
                    self._discard(made, target)
                    raise
            finally:
                given.close()
        if progress is not None:
            progress(source.length)
        return source.length

    def _discard(self, stream: Any, uri: str) -> None:
        """Leave nothing of a file that could not be written whole. Raises nothing."""
        file_system, path = self.file_system(uri), self._path(uri)
        with suppress(Exception):
            if file_system.hasPathCapability(path, _ABORTABLE):  # visible when closed: what is there is another's
                stream.abort()
                return
            with suppress(Exception):
                stream.close()
            file_system.delete(path, False)

    def _path(self, uri: str) -> Any:
        # An address without a path is that of the root. Of a Path without one Hadoop can make no status.
        return self.jvm.org.apache.hadoop.fs.Path(f"{uri}/" if _ROOT.fullmatch(uri) else uri)

    @contextmanager
    def explained(self, uri: str) -> Iterator[None]:
        """Turn what Java throws inside a `with` block into an error of `statestore`, for callers of `jvm` too."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors.exceptions.captured import CapturedException

        try:
            with _answering(uri):
                yield
        except Py4JJavaError as error:
            raise explain(uri, error.java_exception) from error
        except CapturedException as error:
            # PySpark turns some of Java's exceptions, IllegalArgumentException among them, into errors of its own.
            if error._origin is None:
                raise
            raise explain(uri, error._origin) from error


@contextmanager
def _answering(what: str) -> Iterator[None]:
    """Say so where the JVM does not answer. What Java throws passes."""
    from py4j.protocol import Py4JError, Py4JJavaError

    try:
        yield
    except Py4JJavaError:
        raise
    except Py4JError as error:
        raise Unavailable(f"{what}: the JVM does not answer. It may have ended: {error}") from error


def _must_stand_at(position: int, stream: Any, uri: str) -> None:
    """Raise Unavailable where a Java stream is elsewhere in its file than the bytes say that came or went.

    py4j sends a call once more where the JVM drops the connection in place of an answer, as it does where it has not
    the memory to write one (0.10.9). A second read takes the next bytes, and a second write writes the same again.
    """
    if (stands := stream.getPos()) != position:
        raise Unavailable(
            f"{uri}: an answer of the JVM got lost, so bytes are missing or doubled. Its stream stands at byte "
            f"{stands}, and {position} was expected. The JVM may lack memory. Give it more, and try again"
        )


def _status(status: Any) -> Status:
    path = status.getPath()
    return Status(
        uri=path.toString(),
        path=path.toUri().getPath(),
        name=path.getName(),
        length=status.getLen(),
        mtime_ms=status.getModificationTime(),
        is_directory=status.isDirectory(),
    )
