"""Generate the protobuf modules and their stubs: of eos/pulsar/wire/pulsar.proto, and of BookKeeper's bookkeeper.proto.

`--check` writes nothing and exits with 1 when the committed files are stale.
Needs grpcio-tools, a development dependency; users of eos don't.

Generated code runs with the protobuf that it names and with newer ones up to the next major version, so it names the
oldest one that we support. The protoc of that one (grpcio-tools 1.71.2) can't be installed beside the newest; it writes
the same modules as today's, to the byte, but for this name.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from importlib import resources
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (Path("eos/pulsar/wire/pulsar.proto"), Path("eos/bookkeeper/wire/bookkeeper.proto"))
STUBS = tuple(source.with_name(f"{source.stem}_pb2.pyi") for source in SOURCES)
OUTPUTS = (*(stub.with_suffix(".py") for stub in STUBS), *STUBS)
OLDEST_PROTOBUF = (5, 29, 0)
"""The lower bound of protobuf in pyproject.toml."""


def generate(into: Path) -> None:
    """Run protoc, writing all outputs under `into`."""
    includes = resources.files("grpc_tools") / "_proto"
    arguments = ["protoc", f"-I{ROOT}", f"-I{includes}", f"--python_out={into}", f"--pyi_out={into}"]
    arguments += map(str, SOURCES)
    if protoc.main(arguments) != 0:
        raise SystemExit("protoc failed")
    # protoc writes `Mapping` without its parameters, which mypy's strict mode refuses.
    for stub in (into / name for name in STUBS):
        typed = stub.read_text().replace("_Mapping]", "_Mapping[str, object]]")
        # Schema.Type.KeyValue as a name of Schema itself would hide the message KeyValue from mypy.
        stub.write_text(typed.replace("    KeyValue: Schema.Type\n", ""))
    for module in (into / name for name in OUTPUTS if name not in STUBS):
        module.write_text(for_the_oldest(module.read_text()))


def for_the_oldest(module: str) -> str:
    """Return a generated module that names the oldest protobuf in place of the one that has generated it."""
    dotted = ".".join(map(str, OLDEST_PROTOBUF))
    named, comments = re.subn(r"(# Protobuf Python Version: )[\d.]+", rf"\g<1>{dotted}", module)
    lines = "".join(f"    {number},\n" for number in OLDEST_PROTOBUF)
    named, calls = re.subn(r"(Domain\.PUBLIC,\n)(?:    \d+,\n){3}", rf"\g<1>{lines}", named)
    if (comments, calls) != (1, 1):
        raise SystemExit("protoc names its version in another way than expected; look at what it wrote")
    return named


def main() -> int:
    """Generate, or check that what is committed is what would be generated."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file is stale")
    if not parser.parse_args().check:
        generate(ROOT)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        generate(Path(scratch))
        stale = [str(out) for out in OUTPUTS if (ROOT / out).read_bytes() != (Path(scratch) / out).read_bytes()]
    if stale:
        print(f"stale: {', '.join(stale)}; run python tools/generate_wire.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
