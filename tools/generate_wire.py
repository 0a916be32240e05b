"""Generate the protobuf modules and their stubs: of eos/pulsar/wire/pulsar.proto, and of BookKeeper's bookkeeper.proto.

`--check` writes nothing and exits with 1 when the committed files are stale.
Needs grpcio-tools, a development dependency; users of eos don't.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from importlib import resources
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (Path("eos/pulsar/wire/pulsar.proto"), Path("eos/bookkeeper/wire/bookkeeper.proto"))
STUBS = tuple(source.with_name(f"{source.stem}_pb2.pyi") for source in SOURCES)
OUTPUTS = (*(stub.with_suffix(".py") for stub in STUBS), *STUBS)


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
