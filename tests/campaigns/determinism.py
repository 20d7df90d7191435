"""Shows that results depend on the seed, and on nothing else.

    python tests/campaigns/determinism.py [--only CASE]... [--python PYTHON]...

Each case is run in a process of its own: twice with one thread, with two and with four threads, and
once with each further interpreter, which must have mallocgame installed. The second process has
another seed of Python's hashes, another time zone, locale and working folder. What the runs write
must be the same byte for byte, but for the seconds that something took and TensorBoard's files,
which are named by the time of day. It prints the rows of docs/testing.md and exits 1 if
a case differs or fails.
"""

import argparse
import csv
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence

import numpy as np

import mallocgame as mg
from mallocgame import mcts

_ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(_ROOT / "examples"), str(_ROOT / "tests" / "python")]

from custom_search_model import TicTacToe
from small_agents import EGRL, MUZERO, texts

PROGRAM, OTHER = "mlp_train_adam_b512.tpu_v4i_16mib", "resnet50_b1.tpu_v4i"
EVALUATIONS = 2000
# Times are the only thing that may differ.
TIMES = ("seconds", "mean_seconds")
OTHER_SURROUNDINGS = {"PYTHONHASHSEED": "7", "TZ": "Asia/Kathmandu", "LC_ALL": "C"}
Case = Callable[[int, pathlib.Path], None]


def command(*arguments: object) -> None:
    """Runs `mallocgame` with these arguments."""
    subprocess.run([sys.executable, "-m", "mallocgame", *map(str, arguments)], check=True)


def solvers(threads: int, folder: pathlib.Path) -> None:
    """Every solver in both games, with a limit of evaluations, on as many cores as threads."""
    del threads  # The process has its cores.
    for solver in mg.solver_names():
        for game in ("time", "priority") if solver == "mcts" else (None,):
            result = mg.solve(
                mg.load_program(PROGRAM),
                solver,
                seconds=0,
                evaluations=EVALUATIONS,
                seed=3,
                game=game,
            )
            text = result.plan.to_json(mg.load_program(PROGRAM))
            (folder / f"{solver}.{game}.json").write_text(text, encoding="utf-8")


def vectors(threads: int, folder: pathlib.Path) -> None:
    """Vector environments of both games: 300 steps of 64 games."""
    for game in ("time", "priority"):
        batch = mg.VectorEnv(64, [PROGRAM, OTHER], game=game, threads=threads)
        chance = np.random.default_rng(1)
        seen = [batch.reset(seed=1)[0]]
        for _ in range(300):
            wishes = chance.random(batch.action_masks().shape)
            step = batch.step(np.where(batch.action_masks(), wishes, -1).argmax(axis=1))
            seen += [step[0], *step[1:4]]
        (folder / game).write_text(digest(seen), "utf-8")


def searches(threads: int, folder: pathlib.Path) -> None:
    """Tree search over 64 boards of tic-tac-toe, with each rule of selection."""
    model = TicTacToe(64)
    for rule in ("gumbel", "puct"):
        search = mcts.search(64, model.num_actions, rule, simulations=400, threads=threads)
        search.run(model, seed=1)
        (folder / rule).write_text(digest([search.visits, search.q, search.values]), "utf-8")


def placements() -> dict[str, mg.placement.Placement]:
    """The placement problem on a hierarchy, and the games it may be."""
    return {
        "hierarchy": mg.placement.problem(OTHER, "nnp_i"),
        "time": mg.placement.problem(OTHER, game="time"),
        "priority": mg.placement.problem(OTHER, game="priority"),
    }


def maps(threads: int, folder: pathlib.Path) -> None:
    """EGRL's maps, graded many at a time."""
    for name, problem in placements().items():
        chance = np.random.default_rng(2)
        shape = (500, problem.num_nodes, 2)
        found = chance.integers(0, len(problem.level_names), shape, np.uint8)
        graded = problem.evaluate_many(found, threads)
        (folder / name).write_text(digest(list(graded)), "utf-8")


def muzero(threads: int, folder: pathlib.Path) -> None:
    """Three steps of MuZero in each game."""
    from mallocgame import agents

    for game in ("time", "priority"):
        trainer = agents.MuZero([PROGRAM, OTHER], MUZERO, seed=3, threads=threads, game=game)
        for _ in range(3):
            trainer.step()
        trainer.save(folder / f"{game}.muzero")


def egrl(threads: int, folder: pathlib.Path) -> None:
    """Six generations of EGRL on a hierarchy and in each game."""
    from mallocgame import agents

    for name, problem in placements().items():
        trainer = agents.Egrl(problem, EGRL, seed=3, threads=threads)
        for _ in range(6):
            trainer.step()
        trainer.save(folder / f"{name}.egrl")


def offline(threads: int, folder: pathlib.Path) -> None:
    """`mallocgame offline`, with as many processes as threads."""
    usual = ("--limit", 4, "--behaviours", "greedy,rent,random")
    command("offline", *usual, "--jobs", threads, "-o", folder)


def commands(threads: int, folder: pathlib.Path) -> None:
    """The files of `solve`, `view`, `compare` and `train`."""
    del threads
    limits = ("--seconds", 0, "--evaluations", EVALUATIONS, "--seed", 5)
    plan, log = folder / "plan.json", folder / "game.mgr"
    command("solve", PROGRAM, "--solver", "anneal", *limits, "-o", plan, "--log", log)
    command("view", log, "--against", "xla", "-o", folder / "page.html")
    command("compare", PROGRAM, "--solvers", "rent,anneal", *limits, "--csv", folder / "table.csv")
    usual = ("--hierarchy", "nnp_i", "--evaluations", 60, "--out", folder / "egrl")
    command("train", "egrl", OTHER, *usual, "--config", *texts(EGRL))


CASES: dict[str, Case] = {
    case.__name__: case
    for case in (solvers, vectors, searches, maps, muzero, egrl, offline, commands)
}


def digest(values: object) -> str:
    """Returns the SHA-256 of arrays in whatever they are nested in."""
    found = hashlib.sha256()

    def add(value: object) -> None:
        if isinstance(value, dict):
            for key in sorted(value):
                found.update(str(key).encode())
                add(value[key])
        elif isinstance(value, list | tuple):
            for one in value:
                add(one)
        else:
            found.update(np.ascontiguousarray(value).tobytes())

    add(values)
    return found.hexdigest()


def without_times(path: pathlib.Path) -> bytes:
    """Returns the content of a file without what something took."""
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            rows = [
                {name: cell for name, cell in row.items() if name not in TIMES}
                for row in csv.DictReader(file)
            ]
        return json.dumps(rows).encode()
    if path.suffix == ".json":
        return json.dumps(timeless(json.loads(path.read_bytes())), sort_keys=True).encode()
    return path.read_bytes()


def timeless(value: object) -> object:
    """Returns a JSON value without what something took."""
    if isinstance(value, dict):
        return {name: timeless(one) for name, one in value.items() if name not in TIMES}
    return [timeless(one) for one in value] if isinstance(value, list) else value


def written(folder: pathlib.Path) -> dict[str, str]:
    """Returns the digest of each file that a run wrote."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(without_times(path)).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "tensorboard" not in path.parts
    }


def outcome(
    python: str, case: str, threads: int, surroundings: dict[str, str]
) -> dict[str, str] | str:
    """Runs a case. Returns the digests of what it wrote, or its last words."""
    with tempfile.TemporaryDirectory(prefix="mallocgame-determinism-") as folder:
        ran = subprocess.run(
            [python, str(pathlib.Path(__file__).resolve()), "--run", case, str(threads), folder],
            env=os.environ | surroundings,
            cwd="/" if surroundings else None,
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode != 0:
            return (ran.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return written(pathlib.Path(folder))


def told(first: dict[str, str], other: dict[str, str] | str) -> str:
    """Says how a run compares with the first one."""
    if isinstance(other, str):
        return f"failed: {other}"
    if first == other:
        return "same"
    differ = sorted(name for name in first | other if first.get(name) != other.get(name))
    return f"differs: {', '.join(differ)}"


def run(case: str, threads: int, folder: pathlib.Path) -> None:
    """Runs a case in this process, on as many cores as threads where there are so many."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[:threads])
    CASES[case](threads, folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a row for each case."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", choices=list(CASES), metavar="CASE")
    parser.add_argument("--python", action="append", default=[], metavar="PYTHON")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.run:
        run(options.run[0], int(options.run[1]), pathlib.Path(options.run[2]))
        return 0
    ways: Iterable[tuple[str, str, int, dict[str, str]]] = [
        ("another process", sys.executable, 1, OTHER_SURROUNDINGS),
        ("2 threads", sys.executable, 2, {}),
        ("4 threads", sys.executable, 4, {}),
        *((python, python, 1, {}) for python in options.python),
    ]
    print("| case | files | " + " | ".join(name for name, *_ in ways) + " |")
    print("| --- | --: |" + " --- |" * len(list(ways)))
    good = True
    for case in options.only or CASES:
        first = outcome(sys.executable, case, 1, {})
        if isinstance(first, str) or not first:
            print(f"| {case} | failed: {first} |", flush=True)
            good = False
            continue
        cells = [told(first, outcome(python, case, n, more)) for _, python, n, more in ways]
        good = good and all(cell == "same" for cell in cells)
        print(f"| {case} | {len(first)} | " + " | ".join(cells) + " |", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
