#!/usr/bin/env bash
# Installs what the tier needs, checks the code (full only), builds, and runs the tests of the tier,
# C++ and Python. CONTRIBUTING.md says what is in which tier; .ci/weekly runs what is in none.
# Usage: tests/run.sh [unit|full]     (full, if it isn't said)
set -euo pipefail
cd "$(dirname "$0")/.."
root="$PWD"
tier="${1:-full}"
stage() { echo "== $* ($SECONDS s)"; }
case "$tier" in
  # Torch isn't asked for: where there is none, the agents that learn are left out.
  unit) settings=(-DMALLOCGAME_TORCH=AUTO) targets=(--target unit_tests) labels=(-L '^unit$') ;;
  full) settings=() targets=() labels=(-LE '^weekly$') ;;
  *) echo "run: found the tier '$tier', allowed: unit, full" >&2; exit 2 ;;
esac
.ci/setup "$tier"
if [[ "$tier" == full ]]; then
  stage "lint"
  bash tests/lint.sh --changed
fi

# In the folder where the package was built, so that only tests and benchmarks are missing.
stage "C++: build"
cmake --preset cpp "${settings[@]}"
cmake --build --preset cpp -j 2 "${targets[@]}"
stage "C++: tests"
ctest --preset cpp -j 2 "${labels[@]}"

# From another folder: in the root, `import mallocgame` would find the C++ sources as a namespace
# package.
stage "Python: tests"
cd "$(mktemp -d)"
"$root/.venv/bin/python" -m pytest -c "$root/pyproject.toml" --rootdir "$root" --tier "$tier" \
  -n 2 --dist loadfile --durations 12 "$root/tests/python" "$root/tests/architecture"
stage "done: $tier"
