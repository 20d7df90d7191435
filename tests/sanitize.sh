#!/usr/bin/env bash
# Runs the C++ tests, and then the Python tests through the extension, with GCC's sanitizers:
# `address` is AddressSanitizer and UndefinedBehaviorSanitizer, `thread` is ThreadSanitizer. It
# needs `.ci/setup test`. Builds stay in build/asan and build/tsan.
# Usage: tests/sanitize.sh address|thread [PYTEST ARGUMENT...]
set -euo pipefail
cd "$(dirname "$0")/.."
root="$PWD"
# Left out: what starts the compiler (AddressSanitizer takes the addresses that libtpu wants), a
# browser or another build, and what is judged by its time. ThreadSanitizer is for what has threads.
# The tests that read modules of XLA have none, and die under it in the maps of Debian's protobuf,
# which is built without it.
case "${1:-}" in
  address)
    preset=asan libraries=(libasan.so libstdc++.so) without=()
    python=("$root/tests/python" --ignore-glob="$root/tests/python/xla_[!e]*"
      --ignore-glob="$root/tests/python/xla_em*")
    for test in benchmark docs examples levels plots ray release view wheel whole_files; do
      python+=(--ignore="$root/tests/python/${test}_test.py")
    done ;;
  thread)
    preset=tsan libraries=(libtsan.so libstdc++.so) without=(-LE '^(hlo|fuzz)$')
    python=()
    for test in env game mcts observation prices solve styles vector_env; do
      python+=("$root/tests/python/${test}_test.py")
    done ;;
  *)
    echo "sanitize: usage: tests/sanitize.sh address|thread [PYTEST ARGUMENT...]" >&2
    exit 2 ;;
esac
shift
if (($#)); then python=("$@"); fi

cmake --preset "$preset"
cmake --build --preset "$preset" -j "$(nproc)"
echo "== C++: tests with $preset"
# Tests fork while threads run, and start threads in the child.
export TSAN_OPTIONS=die_after_fork=0
# ThreadSanitizer of GCC 12 needs addresses that aren't random.
setarch -R ctest --preset "$preset" -j "$(nproc)" "${without[@]}"

echo "== Python: tests with $preset"
package="$root/build/$preset/package"
rm -rf "$package"
mkdir "$package"
cp -r bindings/python/mallocgame "$package"
cp -r examples/workloads "$package/mallocgame"
cmake --install "build/$preset" --component python --prefix "$package"
preload=()
for library in "${libraries[@]}"; do preload+=("$(g++ -print-file-name="$library")"); done
# Python keeps what it has until its process ends, so leaks can't be told there.
export ASAN_OPTIONS=detect_leaks=0 JAX_PLATFORMS=cpu LD_PRELOAD="${preload[*]}"
export PYTHONPATH="$package"
cd "$(mktemp -d)"
setarch -R "$root/.venv/bin/python" -m pytest -c "$root/pyproject.toml" --rootdir "$root" \
  -n "$(nproc)" --dist worksteal --durations 12 --timeout 7200 "${python[@]}"
