#!/usr/bin/env bash
# Checks that all code is formatted, that no line is too long, and that the tools find nothing:
# clang-format, codespell, ruff, mypy and clang-tidy. It is the first step of tests/run.sh and needs
# `.ci/setup full`. The versions of the tools stand in pyproject.toml (`lint`).
# Usage: tests/lint.sh [--fix] [--quick | --changed]
#   --fix      writes what the formatters and ruff can mend
#   --quick    leaves out clang-tidy, which takes many minutes over everything
#   --changed  runs clang-tidy on what the branch changes, committed or not, against the commit
#              where it left main; on main, against the commit before. LINT_BASE names another.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=.venv/bin
fix=false quick=false changed=false
for argument in "$@"; do
  case "$argument" in
    --fix) fix=true ;;
    --quick) quick=true ;;
    --changed) changed=true ;;
    *)
      echo "lint: unknown argument '$argument', allowed: --fix, --quick, --changed" >&2
      exit 2 ;;
  esac
done
for tool in clang-format clang-tidy codespell ruff mypy; do
  [[ -x $bin/$tool ]] || { echo "lint: no $bin/$tool: run .ci/setup full first" >&2; exit 2; }
done

echo "== lint: clang-format"
mapfile -t formatted < <(git ls-files '*.h' '*.cc' '*.js')
if $fix; then "$bin/clang-format" -i "${formatted[@]}"; fi
"$bin/clang-format" --dry-run --Werror "${formatted[@]}"

echo "== lint: columns"
"$bin/python" -m pytest -q --no-header tests/architecture/lines_test.py

echo "== lint: spelling"
git ls-files -z | xargs -0 "$bin/codespell"

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

# The commit to compare with; nothing, where there is none.
base() {
  local ref commit
  if [[ -n "${LINT_BASE:-}" ]]; then git rev-parse "$LINT_BASE"; return; fi
  for ref in origin/main main; do
    if commit="$(git merge-base HEAD "$ref" 2>/dev/null)"; then
      if [[ "$commit" == "$(git rev-parse HEAD)" ]]; then
        commit="$(git rev-parse --verify --quiet HEAD~1)" || return 0
      fi
      echo "$commit"
      return
    fi
  done
}
files=()
if $changed; then
  since="$(base)"
  if [[ -z "$since" ]]; then
    echo "== lint: mypy; clang-tidy is left out, as there is no commit to compare with"
    exec "$bin/mypy"
  fi
  mapfile -t files < <({
    git diff --name-only --diff-filter=d "$since" -- '*.h' '*.cc'
    git ls-files --others --exclude-standard -- '*.h' '*.cc'
  } | sort -u)
  if ((${#files[@]} == 0)); then
    echo "== lint: mypy; clang-tidy is left out, as no C++ has changed since ${since:0:10}"
    exec "$bin/mypy"
  fi
fi
echo "== lint: mypy and clang-tidy${files[*]:+ of ${#files[@]} changed files}"
log=build/lint.log types_log=build/mypy.log
mkdir -p build
# mypy keeps one core busy for most of a minute.
"$bin/mypy" >$types_log 2>&1 &
types=$!
mapfile -t generated < <(git ls-files '*.proto' | sed 's/\.proto$/.pb.h/')
{ cmake --preset lint && cmake --build build/lint --target "${generated[@]}"; } >$log 2>&1 ||
  { cat $log >&2; exit 1; }
# To read the headers takes longer than to check what includes them, so the preset joins sources of
# a target in eights (CMake's unity build). Generated code and the sources of one header each are
# left alone and left out. Examples of an installed library have no compile command here. Of
# changed files those are read that are or hold them; a header is read in one source that includes
# it. What clang-tidy finds is printed at the end, where it is seen.
mapfile -t sources < <("$bin/python" - "${files[@]}" <<'PYTHON'
import json, pathlib, re, sys

root = pathlib.Path.cwd()
changed = sys.argv[1:]
holds = {}  # the sources of the project that are read with each
for entry in json.loads((root / "build/lint/compile_commands.json").read_text()):
    source = pathlib.Path(entry["file"])
    if source.parent.name == "Unity":
        parts = re.findall(r'#include "(.+)"', source.read_text())
        holds[source] = [pathlib.Path(part).relative_to(root) for part in parts]
    elif root in source.parents and root / "build" not in source.parents:
        holds[source] = [source.relative_to(root)]
wanted = dict.fromkeys(holds if not changed else ())
for name in changed:
    line = f'#include "{name}"'
    for source, parts in holds.items():
        if any(str(part) == name or name.endswith(".h") and line in part.read_text()
               for part in parts):
            wanted[source] = None
            break
for source in wanted:
    print(source.relative_to(root))
PYTHON
)
printf '%s\n' "${sources[@]}" |
  xargs -r -d '\n' -P "$(nproc)" -n 1 "$bin/clang-tidy" --quiet -p build/lint >$log 2>&1 || {
    grep -Ev "Processing file|warnings generated" $log >&2
    echo "lint: sources are read together: names in their anonymous namespaces must differ" >&2
    exit 1
  }
wait $types || { cat $types_log >&2; exit 1; }
echo "== lint: clean"
