#!/bin/sh
# Build wheel and sdist twice, compare their bytes, check them, and try the wheel in an empty environment.
# The first wheel comes from the unpacked sdist and the second from this tree: the sdist is complete, and paths don't matter.
set -eu
cd "$(dirname "$0")/.."
python=$PWD/.venv/bin/python
constraints=$PWD/requirements/constraints.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2> /dev/null || echo 1767225600) # the last commit's time, else the jar's
fi
export SOURCE_DATE_EPOCH

echo "Building the sdist, and the wheel from it"
"$python" -m hatchling build -t sdist -d "$work/first" > /dev/null
mkdir "$work/unpacked"
tar -xzf "$work"/first/*.tar.gz -C "$work/unpacked" --strip-components=1
(cd "$work/unpacked" && "$python" -m hatchling build -t wheel -d "$work/first" > /dev/null)
echo "Building both again from this tree"
"$python" -m hatchling build -t sdist -t wheel -d "$work/second" > /dev/null
for file in "$work"/first/*; do
  cmp "$file" "$work/second/$(basename "$file")" || { echo "Two builds of one source differ in $(basename "$file")." >&2; exit 1; }
done

"$python" tools/check_wheel.py "$work"/first/*.whl "$work"/first/*.tar.gz
echo "Trying the wheel in an empty environment"
"$python" -m venv "$work/empty"
"$work/empty/bin/python" -m pip --disable-pip-version-check install --quiet --constraint "$constraints" "$work"/first/*.whl
"$work/empty/bin/python" -m pip --disable-pip-version-check check
(
  cd "$work" # not the project's folder: Python would import from there
  "$work/empty/bin/eos" --version
  "$work/empty/bin/statestore" --help > /dev/null
  "$work/empty/bin/python" -c "import eos, statestore; assert statestore.jar_path().stat().st_size > 1_000_000"
)
mkdir -p dist
cp "$work"/first/* dist/
(cd dist && for file in "$work"/first/*; do sha256sum "$(basename "$file")"; done)
