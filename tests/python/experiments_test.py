"""Experiments: grids, runs that go on where they stopped, tables, and commands of benchmarks."""

import importlib.util
import pathlib
import re
import subprocess
import sys
import time
from typing import Literal

import numpy as np
import pytest

import mallocgame as mg
from mallocgame import experiments as ex
from mallocgame.experiments.command import parser_of

GRID = ex.Grid(program=["a", "b/c"], seed=range(2))


def measure(program: str, seed: int, factor: int = 1) -> dict:
    return {"latency_ps": factor * (len(program) + 10 * seed)}


def fail_on_b(program: str, seed: int) -> dict:
    if program != "a":
        raise mg.MallocGameError(f"no plan of {program}\nat all")
    return measure(program, seed)


def count(program: str, seed: int, folder: str) -> dict:
    """Fails the first time, as if its machine did."""
    tries = pathlib.Path(folder, f"{seed}.tries")
    tries.write_text(tries.read_text() + "x" if tries.exists() else "x")
    if len(tries.read_text()) < 2:
        raise OSError("the network")
    return {"tries": len(tries.read_text())}


# --- grids


def test_a_grid_has_a_cell_for_each_combination():
    assert GRID.axes == ("program", "seed") and len(GRID) == 4
    assert list(GRID)[1] == {"program": "a", "seed": 1}
    assert [cell["seed"] for cell in GRID.where(lambda program, seed: seed > 0)] == [1, 1]
    assert [*map(ex.cell_name, GRID.only({"program": ["b+c"], "unknown": ["x"]}))] == [
        "b+c 0",
        "b+c 1",
    ]
    more = GRID + ex.Grid(program=["a", "d"], seed=[0])
    assert [*map(ex.cell_name, more)] == ["a 0", "a 1", "b+c 0", "b+c 1", "d 0"]


def test_a_grid_refuses_values_that_it_could_not_tell_apart():
    with pytest.raises(mg.InvalidInputError, match="found program 'a' twice, allowed: once"):
        ex.Grid(program=["a", "a"])
    with pytest.raises(mg.InvalidInputError, match="found the axes program, allowed: program, "):
        GRID + ex.Grid(program=["a"])


def test_evenly_takes_both_ends():
    assert ex.evenly(range(10), 3) == [0, 4, 9]
    assert ex.evenly([1, 2], 5) == [1, 2]


# --- runs


@pytest.mark.parametrize("workers", [ex.HERE, 2])
def test_a_run_gives_a_row_for_each_cell_in_order(tmp_path, workers):
    rows = ex.run(measure, GRID, tmp_path, settings={"factor": 2}, workers=workers)
    assert rows == [cell | measure(**cell, factor=2) for cell in GRID]
    assert (tmp_path / "b+c" / "1.json").exists()


def test_a_run_goes_on_where_it_was_interrupted(tmp_path):
    asked = []

    def interrupted(program: str, seed: int) -> dict:
        asked.append((program, seed))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return measure(program, seed)

    with pytest.raises(KeyboardInterrupt):
        ex.run(interrupted, GRID, tmp_path)
    done = []
    rows = ex.run(interrupted, GRID, tmp_path, done=done.append)
    assert rows == [cell | measure(**cell) for cell in GRID]
    assert asked == [("a", 0), ("a", 1), ("b/c", 0), ("b/c", 0), ("b/c", 1)]
    assert done == list(GRID)


def test_answers_of_other_settings_are_refused(tmp_path):
    ex.run(measure, GRID, tmp_path, settings={"factor": 2})
    with pytest.raises(mg.InvalidInputError, match=r"0.json: found .* factor 2, allowed: 3; give"):
        ex.run(measure, GRID, tmp_path, settings={"factor": 3})

    def inputs(program: str, seed: int) -> dict:
        return {"fingerprint": program}

    with pytest.raises(mg.InvalidInputError, match=r"fingerprint None, allowed: a; give"):
        ex.run(measure, GRID, tmp_path, settings={"factor": 2}, inputs=inputs)
    (tmp_path / "a" / "0.json").write_text('{"latency')
    with pytest.raises(mg.InvalidInputError, match=r"0.json: no result of an experiment .*delete"):
        ex.run(measure, GRID, tmp_path, settings={"factor": 2})


@pytest.mark.parametrize("workers", [ex.HERE, 1])
def test_a_cell_that_fails_is_told_and_takes_no_other_with_it(tmp_path, workers, capsys):
    with pytest.raises(ex.FailedCellsError) as caught:
        ex.run(fail_on_b, GRID, tmp_path, workers=workers)
    assert "2 of 4 cells failed: b+c 0: no plan of b/c at all; b+c 1: " in str(caught.value)
    assert [(row["program"], row["seed"]) for row in caught.value.rows] == [("a", 0), ("a", 1)]
    assert "b+c 0: no plan of b/c at all" in capsys.readouterr().err
    assert len(ex.run(measure, GRID, tmp_path)) == 4


def test_a_fault_of_a_measure_is_shown_with_its_place(tmp_path, capsys):
    with pytest.raises(ex.FailedCellsError, match="4 of 4 cells failed: a 0: TypeError: "):
        ex.run(measure, GRID, tmp_path, settings={"unknown": 1})
    assert "Traceback" in capsys.readouterr().err


def test_what_may_be_the_fault_of_a_machine_is_tried_again(tmp_path):
    one = ex.Grid(program=["a"], seed=[0])
    settings = {"folder": str(tmp_path)}
    (row,) = ex.run(count, one, tmp_path / "kept", settings=settings, workers=1)
    assert row["tries"] == 2


def test_a_run_that_is_stopped_keeps_no_answer_of_less_time(tmp_path):
    asked = []

    def one(program: str, seed: int) -> dict:
        asked.append(program)
        return measure(program, seed)

    rows = ex.run(one, GRID, tmp_path, stop=lambda: len(asked) > 1)
    assert [(row["program"], row["seed"]) for row in rows] == [("a", 0)]
    assert not (tmp_path / "a" / "1.json").exists()


def test_answers_may_be_kept_elsewhere_and_with_files(tmp_path):
    def keep(cell: ex.Cell, answer: dict) -> dict:
        (tmp_path / f"{cell['seed']}.txt").write_text(str(answer["latency_ps"]))
        return {"kept": True}

    one = ex.Grid(program=["a"], seed=[3])
    rows = ex.run(measure, one, tmp_path, layout="{seed}/runs/{program}", keep=keep)
    assert rows == [{"kept": True, "program": "a", "seed": 3}]
    assert (tmp_path / "3" / "runs" / "a.json").exists() and (tmp_path / "3.txt").exists()
    with pytest.raises(mg.InvalidInputError, match=r"layout: found '\{seed\}', allowed: program, "):
        ex.run(measure, one, tmp_path, layout="{seed}")


# --- tables


def test_rows_become_arrays_of_seeds_and_levels(tmp_path):
    rows = ex.run(measure, GRID, tmp_path)
    assert ex.array(rows, "latency_ps", "seed", "program").tolist() == [[1, 3], [11, 13]]
    doubled = ex.array(rows, lambda row: 2.0 * row["latency_ps"], "seed", "program")
    assert doubled.tolist() == [[2, 6], [22, 26]]
    assert list(ex.grouped(rows, "program", "seed")) == [(c["program"], c["seed"]) for c in GRID]
    with pytest.raises(mg.InvalidInputError, match=r"seed 1: found no row of program b\+c"):
        ex.array(rows[:3], "latency_ps", "seed", "program")


def test_a_table_is_markdown_and_csv(tmp_path):
    rows = ex.run(measure, GRID, tmp_path)

    def spread(values: np.ndarray) -> ex.Interval:
        return ex.Interval(values.mean(), values.min(), values.max())

    table = ex.table(rows, "program", "latency_ps", spread, level="program")
    assert str(table).splitlines() == [
        "| program | seeds | programs | latency_ps |",
        "| --- | --: | --: | --: |",
        "| a | 2 | 1 | 6.000 (1.000 to 11.000) |",
        "| b+c | 2 | 1 | 8.000 (3.000 to 13.000) |",
    ]
    table.add("short")
    assert table.csv().splitlines()[-2:] == ["b+c,2,1,8.000 (3.000 to 13.000)", "short,,,"]


def test_intervals_are_shown_with_their_digits():
    assert f"{ex.Interval(0.0, -1.0, 1.0).exp():.2f}" == "1.00 (0.37 to 2.72)"


def test_the_difference_of_one_seed_has_no_width():
    assert ex.difference(np.array([3.0]), np.array([1.0, 2.0])) == ex.Interval(1.5, 1.5, 1.5)
    same = np.array([1.0, 1.0])
    assert ex.difference(same, same) == ex.Interval(0.0, 0.0, 0.0)


# --- commands


def benchmark(
    bench: ex.Bench,
    *programs: str,
    seconds: float = 60,
    games: tuple[int, ...] = (8,),
    players: tuple[str, ...] = ("a",),
    split: Literal["validation", "test"] = "test",
    splits: tuple[Literal["validation", "test"], ...] = ("test",),
    seeds: tuple[int, ...] = (0, 1),
    picture: pathlib.Path | None = None,
    cold: bool = False,
) -> int:
    """Prints what it was given."""
    print(bench.folder.name, programs, seconds, games, players, split, splits, seeds)
    print(picture, cold, bench.workers, len(bench.run(measure, GRID)))
    return 3


def call(*arguments: object) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        ex.main(benchmark, [*map(str, arguments)])
    return ended.value.code


def test_a_command_has_the_options_of_its_function(tmp_path, capsys):
    assert call(tmp_path / "out") == 3
    assert capsys.readouterr().out.splitlines() == [
        "out () 60 (8,) ('a',) test ('test',) (0, 1)",
        "None False 0 4",
    ]
    options = ["--seconds", 0.5, "--games", "8,64", "--players", "a:x=1,y=2;b", "--cold"]
    options += ["--splits", "validation,test", "--seeds", "3,5", "--picture", "p.png"]
    options += ["--players", "c", "--only", "program=a", "--only", "seed=1"]
    assert call(tmp_path / "out", *options, "x") == 3
    assert capsys.readouterr().out.splitlines() == [
        "out ('x',) 0.5 (8, 64) ('a:x=1,y=2', 'b', 'c') test ('validation', 'test') (3, 5)",
        "p.png True 0 1",
    ]
    assert call(tmp_path / "out", "--seeds", 3, "--jobs", 2) == 3
    said = capsys.readouterr().out
    assert "(0, 1, 2)" in said and " 2 4" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--split", "train"], "invalid choice: 'train'"),
        (["--splits", "train"], "found train, allowed: validation, test"),
        (["--seeds", "-1"], "found -1, allowed: a number, or several"),
        (["--only", "a"], "found a, allowed: AXIS=NAME,NAME"),
        (["--jobs", "2", "--ray", "auto"], "not allowed with argument"),
    ],
)
def test_a_command_says_what_is_allowed(tmp_path, capsys, arguments, said):
    assert call(tmp_path, *arguments) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("only", "said"),
    [
        (["colour=red"], "--only: found colour, allowed: program, seed"),
        (["seed=7"], "--only: found seed=7, allowed: such as program=a seed=0"),
    ],
)
def test_cells_that_there_are_not_are_no_silent_nothing(tmp_path, only, said):
    assert said in str(call(tmp_path, "--only", *only))


def test_a_command_without_a_bench_may_have_a_folder(tmp_path, capsys):
    def listing(folder: pathlib.Path, workers: ex.Workers) -> None:
        print(folder.name, workers)

    with pytest.raises(SystemExit):
        ex.main(listing, [str(tmp_path), "--jobs", "3"])
    assert capsys.readouterr().out == f"{tmp_path.name} 3\n"


def test_a_table_that_needs_more_cells_says_so(tmp_path):
    def lacking(bench: ex.Bench) -> None:
        ex.grouped(bench.run(measure, GRID), "program")["b/c"]

    with pytest.raises(SystemExit, match="--only leaves too little for the table; "):
        ex.main(lacking, [str(tmp_path), "--only", "program=a"])


def test_spaces_separate_values_where_no_texts_follow(tmp_path, capsys):
    def spaced(bench: ex.Bench, *, methods: tuple[str, ...] = ("a",)) -> None:
        print(methods, bench.only)

    with pytest.raises(SystemExit):
        ex.main(spaced, [str(tmp_path), "--methods", "b", "c,d", "--only", "seed=1", "x=y"])
    assert capsys.readouterr().out == "('b', 'c', 'd') {'seed': ['1'], 'x': ['y']}\n"


def test_an_error_of_a_command_is_one_line(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "0.json").write_text("[]")
    said = str(call(tmp_path))
    assert "a/0.json: no result of an experiment" in said and "\n" not in said


ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = sorted(
    path
    for folder in ("quality", "measured", "programs")
    for path in (ROOT / "benchmarks" / folder).glob("*.py")
    if "ex.main(main)" in path.read_text()
)
COMMAND = re.compile(r"python\s+(benchmarks/\w+/\w+\.py)([^`|#]*)")
PAGES = [*(ROOT / "docs").rglob("*.md"), *SCRIPTS]


@pytest.mark.full
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_pages_and_scripts_give_options_that_there_are(script, monkeypatch):
    """Each command of a page, and the usage of the script without its brackets."""
    for folder in (script.parent, ROOT / "examples"):
        monkeypatch.syspath_prepend(str(folder))
    spec = importlib.util.spec_from_file_location(script.stem, script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    parser = parser_of(module.main)
    known = {option for action in parser._actions for option in action.option_strings}
    commands = [
        text
        for page in PAGES
        for path, text in COMMAND.findall(page.read_text())
        if ROOT / path == script
    ]
    asked = {
        option for text in commands for option in re.findall(r"--[a-z-]+", text.split("\n\n")[0])
    }
    assert commands and asked <= known


SCRIPT = """
import pathlib, sys, time
from mallocgame import experiments as ex

def measure(seed: int, folder: pathlib.Path) -> dict:
    (folder / f"{seed}.began").touch()
    while seed == 1:
        time.sleep(0.01)
    return {}

if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    ex.run(measure, ex.Grid(seed=range(2)), folder, settings={"folder": folder}, workers=1)
"""


def test_what_is_done_outlives_a_process_that_is_killed(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    with subprocess.Popen([sys.executable, script, tmp_path]) as process:
        while not (tmp_path / "1.began").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    assert (tmp_path / "0.json").exists() and not (tmp_path / "1.json").exists()
