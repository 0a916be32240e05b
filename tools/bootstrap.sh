# bootstrap.sh PYTHON EXTRAS: make .venv, and install eos with these extras unless that was done before.
# A stamp for each set of extras holds a hash of what decides the result; an interrupted install leaves no stamp.
set -eu
python=$1
extras=$2

if [ -x .venv/bin/python ]; then
  python=.venv/bin/python
elif [ -z "$python" ]; then
  echo "Python 3.11 or newer was not found. Install it, or name it: make PYTHON=/path/to/python3 ..." >&2
  exit 1
fi

wanted=$(cat pyproject.toml requirements/constraints.txt tools/bootstrap.sh | cksum | tr ' ' '-')
stamp=.venv/.installed-$(echo "$extras" | tr ',' '-')
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
  exit 0
fi

if [ ! -x .venv/bin/python ]; then
  echo "Making .venv with $("$python" --version) ($python)"
  if ! "$python" -m venv .venv; then
    rm -rf .venv
    echo "Could not make .venv. On Debian and Ubuntu the package python3-venv is needed." >&2
    exit 1
  fi
fi
echo "Installing eos[$extras] into .venv; the first time this fetches about 700 MB, Spark most of it."
.venv/bin/python -m pip install --disable-pip-version-check --require-virtualenv \
  --constraint requirements/constraints.txt --editable ".[$extras]"
echo "$wanted" > "$stamp"
