# Print the first Python that is new enough; print nothing when there is none.
for candidate in "$EOS_PYTHON" python3 python3.13 python3.12 python3.11; do
  [ -n "$candidate" ] || continue
  if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
    command -v "$candidate"
    exit 0
  fi
done
