#!/usr/bin/env bash
# Checks that all code is formatted, that no line is too long, and that the tools find nothing:
# clang-format, ruff, mypy and clang-tidy. It is the first step of tests/run.sh and needs
# `.ci/setup test`. The versions of the tools stand in pyproject.toml (`lint`).
# Usage: tests/lint.sh [--fix] [--quick]
#   --fix    writes what the formatters and ruff can mend
#   --quick  leaves out clang-tidy, which takes minutes
set -euo pipefail
cd "$(dirname "$0")/.."
bin=.venv/bin
fix=false quick=false
for argument in "$@"; do
  case "$argument" in
    --fix) fix=true ;;
    --quick) quick=true ;;
    *) echo "lint: unknown argument '$argument', allowed: --fix, --quick" >&2; exit 2 ;;
  esac
done
for tool in clang-format clang-tidy ruff mypy; do
  [[ -x $bin/$tool ]] || { echo "lint: no $bin/$tool: run .ci/setup test first" >&2; exit 2; }
done

echo "== lint: clang-format"
mapfile -t formatted < <(git ls-files '*.h' '*.cc' '*.js')
if $fix; then "$bin/clang-format" -i "${formatted[@]}"; fi
"$bin/clang-format" --dry-run --Werror "${formatted[@]}"

echo "== lint: columns"
"$bin/python" -m pytest -q --no-header tests/architecture/lines_test.py

echo "== lint: ruff"
if $fix; then
  "$bin/ruff" format -q
  "$bin/ruff" check -q --fix
fi
"$bin/ruff" format -q --check --diff
"$bin/ruff" check

if $quick; then
  echo "== lint: mypy"
  exec "$bin/mypy"
fi
echo "== lint: mypy and clang-tidy"
log=build/lint.log types_log=build/mypy.log
mkdir -p build
# mypy keeps one core busy for most of a minute.
"$bin/mypy" >$types_log 2>&1 &
types=$!
{ cmake --preset lint && cmake --build build/lint --target mallocgame_protos; } >$log 2>&1 ||
  { cat $log >&2; exit 1; }
# To read the headers takes longer than to check what includes them, so the preset joins sources of
# a target in eights (CMake's unity build). Generated code and the sources of one header each are
# left alone and left out. Examples of an installed library have no compile command here. What
# clang-tidy finds is printed at the end, where it is seen.
mapfile -t sources < <("$bin/python" - <<'PYTHON'
import json, pathlib

root = pathlib.Path.cwd()
for entry in json.loads((root / "build/lint/compile_commands.json").read_text()):
    source = pathlib.Path(entry["file"])
    joined = source.parent.name == "Unity"
    if joined or (root in source.parents and root / "build" not in source.parents):
        print(source.relative_to(root))
PYTHON
)
printf '%s\n' "${sources[@]}" |
  xargs -d '\n' -P "$(nproc)" -n 1 "$bin/clang-tidy" --quiet -p build/lint >$log 2>&1 || {
    grep -Ev "Processing file|warnings generated" $log >&2
    echo "lint: sources are read together: names in their anonymous namespaces must differ" >&2
    exit 1
  }
wait $types || { cat $types_log >&2; exit 1; }
echo "== lint: clean"
