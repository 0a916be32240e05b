# need-chromium.sh: say what is missing of the browser that `make test-report` looks at pages with.
missing=
for program in chromium chromedriver; do
  command -v "$program" > /dev/null || missing="$missing $program"
done
if [ -n "$missing" ]; then
  echo "make test-report needs$missing on the PATH. On Debian: apt-get install chromium chromium-driver" >&2
  exit 1
fi
