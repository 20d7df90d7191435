#!/usr/bin/env bash
# Installs everything, checks the code (tests/lint.sh), builds all C++ targets and runs all tests,
# C++ and Python.
set -euo pipefail
cd "$(dirname "$0")/.."
root="$PWD"
.ci/setup test
bash tests/lint.sh

# In the folder where the package was built, so that only tests and benchmarks are missing.
echo "== C++: build"
cmake --preset cpp
cmake --build --preset cpp -j 2
echo "== C++: tests"
ctest --preset cpp -j 2

# From another folder: in the root, `import mallocgame` would find the C++ sources as a namespace
# package.
echo "== Python: tests"
cd "$(mktemp -d)"
"$root/.venv/bin/python" -m pytest -c "$root/pyproject.toml" --rootdir "$root" \
  -n 2 --dist loadfile --durations 12 "$root/tests/python" "$root/tests/architecture"
