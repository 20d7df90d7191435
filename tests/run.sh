#!/usr/bin/env bash
# Installs what the tier needs, builds, checks the code beside that (full only), and runs the tests
# of the tier, C++ and Python. CONTRIBUTING.md says what is in which tier; .ci/weekly runs what is
# in none.
# Usage: tests/run.sh [unit|full]     (full, if it isn't said)
set -euo pipefail
cd "$(dirname "$0")/.."
root="$PWD"
tier="${1:-full}"
stage() { echo "== $* ($SECONDS s)"; }
case "$tier" in
  # Torch isn't asked for: where there is none, the agents that learn are left out.
  unit) settings=(-DMALLOCGAME_TORCH=AUTO) targets=(--target unit_tests) labels=(-L '^unit$') ;;
  full) settings=() targets=(--target full_tests) labels=(-LE '^weekly$') ;;
  *) echo "run: found the tier '$tier', allowed: unit, full" >&2; exit 2 ;;
esac
.ci/setup "$tier"
# Most of it keeps one core busy, so that the build takes the other one.
lint=
if [[ "$tier" == full ]]; then
  setsid bash tests/lint.sh --changed >build/lint_output.log 2>&1 &
  lint=$!
  trap 'kill -- "-$lint" 2>/dev/null || true' EXIT
fi

# In the folder where the package was built, so that only tests are missing.
stage "C++: build"
cmake --preset cpp "${settings[@]}"
cmake --build --preset cpp -j 2 "${targets[@]}"
if [[ -n "$lint" ]]; then
  stage "lint"
  found=0
  wait "$lint" || found=$?
  trap - EXIT
  cat build/lint_output.log
  if ((found)); then exit "$found"; fi
fi
stage "C++: tests"
ctest --preset cpp -j 2 "${labels[@]}"

# From another folder: in the root, `import mallocgame` would find the C++ sources as a namespace
# package.
stage "Python: tests"
cd "$(mktemp -d)"
"$root/.venv/bin/python" -m pytest -c "$root/pyproject.toml" --rootdir "$root" --tier "$tier" \
  -n 2 --dist worksteal --durations 12 "$root/tests/python" "$root/tests/architecture"
stage "done: $tier"
