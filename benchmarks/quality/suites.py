"""Finds the bounds of each bundled program.

    python benchmarks/quality/suites.py [--output bindings/python/mallocgame/programs/suites.json]
    [--table] [--jobs 1 | --ray ADDRESS]

Needs mallocgame[bounds]. Takes some minutes. Programs measured before are not measured again unless
they changed, or --fresh is given (for changes of the cost model or of the bounds). --table prints
the file tables/suites.csv beside this one, which docs/bounds.md sums up. Which programs are
in the contended suite stands in the same file as the bounds, and stays as it is, so that tables of
any date are of the same programs.
"""

import json
import pathlib
import tempfile

import mallocgame as mg
from mallocgame import experiments as ex

BUNDLED = (
    pathlib.Path(__file__).resolve().parents[2] / "bindings/python/mallocgame/programs/suites.json"
)


def measure(program: str, seconds: float) -> dict:
    loaded = mg.load_program(program)
    assert loaded.xla_plan is not None, "every bundled program has XLA's own plan"
    lp, milp = (mg.bounds.bound(loaded, name, seconds=seconds) for name in ("lp", "milp"))
    return {
        "fingerprint": loaded.fingerprint,
        "no_contention_ps": mg.bounds.bound(loaded).bound_ps,
        "lp_ps": lp.bound_ps,
        "lp_status": lp.status,
        # Stopped early it may be the weaker one.
        "milp_ps": max(milp.bound_ps, lp.bound_ps if milp.status == "stopped" else 0),
        "milp_status": milp.status,
        "xla_ps": mg.simulate(loaded, loaded.xla_plan).latency_ps,
    }


_COLUMNS = ("program", "no-contention us", "lp us", "milp us", "XLA us", "XLA over milp")


def row(name: str, entry: dict) -> list[str]:
    times = (entry[f"{key}_ps"] / 1e6 for key in ("no_contention", "lp", "milp", "xla"))
    above = 100 * (entry["xla_ps"] / entry["milp_ps"] - 1)
    return [name, *(f"{time:.1f}" for time in times), f"{above:.1f} %"]


def write(path: pathlib.Path, entries: dict) -> None:
    suites = json.loads(BUNDLED.read_text())["suites"]
    document = {"suites": suites, "programs": entries}
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")


def main(
    workers: ex.Workers,
    *,
    output: pathlib.Path = BUNDLED,
    seconds: float = 300,
    table: bool = False,
    fresh: bool = False,
) -> None:
    known = {}
    if output.exists() and not fresh:
        known = json.loads(output.read_text())["programs"]
    names = mg.program_names()
    entries = {
        name: known[name]
        for name in names
        if known.get(name, {}).get("fingerprint") == mg.load_program(name).fingerprint
    }
    missing = ex.Grid(program=[name for name in names if name not in entries])

    def keep(cell: ex.Cell, entry: dict) -> dict:
        entries[cell["program"]] = entry
        write(output, known | entries)
        return entry

    with tempfile.TemporaryDirectory() as folder:
        settings = {"seconds": seconds}
        ex.run(measure, missing, folder, settings=settings, workers=workers, keep=keep)
    write(output, {name: entries[name] for name in names})
    if table:
        print(ex.Table(_COLUMNS, [row(name, entries[name]) for name in names]).csv(), end="")
    else:
        print("\n".join(names))


if __name__ == "__main__":
    ex.main(main)
