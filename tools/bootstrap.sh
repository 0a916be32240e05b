# bootstrap.sh PYTHON GROUPS: make .venv, and install eos with these dependency groups unless that was done before.
# A stamp for each set of groups holds a hash of what decides the result; an interrupted install leaves no stamp. A set
# that is part of an installed one is installed too.
set -eu
python=$1
groups=$2

if [ -x .venv/bin/python ]; then
  python=.venv/bin/python
elif [ -z "$python" ]; then
  echo "Python 3.11 or newer was not found. Install it, or name it: make PYTHON=/path/to/python3 ..." >&2
  exit 1
fi

wanted=$(cat pyproject.toml requirements/constraints.txt tools/bootstrap.sh | cksum | tr ' ' '-')
stamp=.venv/.installed+$(echo "$groups" | tr ',' '+')
for there in .venv/.installed+*; do
  [ -f "$there" ] && [ "$(cat "$there")" = "$wanted" ] || continue
  missing=
  for group in $(echo "$groups" | tr ',' ' '); do
    case "$there+" in *"+$group+"*) ;; *) missing=$group ;; esac
  done
  [ -n "$missing" ] || exit 0
done

if [ ! -x .venv/bin/python ]; then
  echo "Making .venv with $("$python" --version) ($python)"
  if ! "$python" -m venv .venv; then
    rm -rf .venv
    echo "Could not make .venv. On Debian and Ubuntu the package python3-venv is needed." >&2
    exit 1
  fi
fi
echo "Installing eos with the groups $groups into .venv; the first time this fetches about 700 MB, Spark most of it."
pip() { .venv/bin/python -m pip --disable-pip-version-check --require-virtualenv "$@"; }
pip install --quiet 'pip>=25.1' # the first that knows dependency groups; Python 3.11 to 3.13 may bring an older one
# shellcheck disable=SC2046  # one option for each group
pip install --constraint requirements/constraints.txt --editable '.[drills]' $(echo "$groups" | tr ',' '\n' | sed 's/^/--group /')
echo "$wanted" > "$stamp"
