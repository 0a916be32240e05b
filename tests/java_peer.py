"""A Java class compiled on the spot and run in a JVM of its own, told what to do by lines on its standard input."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from eos.closing import Closing
from eos.local import checks

_END_S = 20


class JavaPeer(Closing):
    """Runs a class as long as the block lasts. The class ends with its standard input."""

    def __init__(
        self,
        source: Path,
        folder: Path,
        classpath: str,
        arguments: Sequence[str] = (),
        flags: Sequence[str] = ("-Xmx1g",),
    ) -> None:
        """Compile and start it.

        Args:
            source: the class, without a package.
            folder: where its class file and its log may be kept for that time.
            classpath: what it needs.
            arguments: its own.
            flags: the JVM's.

        Raises:
            LocalError: there is no JDK.
        """
        self.log = folder / f"{source.stem}.log"
        java, javac = checks.java(), shutil.which("javac")
        if javac is None:
            raise checks.LocalError(f"No javac on the PATH: compiling {source.name} needs a JDK, not only a JRE.")
        subprocess.run([javac, "-d", str(folder), "-cp", classpath, str(source)], check=True)
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                [str(java), *flags, "-cp", f"{folder}:{classpath}", source.stem, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    @property
    def pid(self) -> int:
        """Of the JVM."""
        return self._process.pid

    def order(self, line: str, answer: str) -> str:
        """Have it do something. Return its words after the word `answer`, that it says when it is done.

        Raises:
            RuntimeError: it has ended; the message holds the end of its log.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self.answer(answer)

    def answer(self, answer: str) -> str:
        """Wait for this word, as `order` does."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, _, rest = line.strip().partition(" ")
            if word == answer:
                return rest
        raise RuntimeError(f"{self.log.stem} ended without saying {answer!r}:\n{self.log.read_text()[-4_000:]}")

    def close(self) -> None:
        """End its input, and kill it where it does not end by that."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
