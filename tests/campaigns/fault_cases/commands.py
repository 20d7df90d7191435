"""The commands that faults happen to, and what of their results must not be lost."""

import abc
import csv
import hashlib
import io
import json
import pathlib
import shutil
import zipfile
from collections.abc import Collection

from small_agents import EGRL, MUZERO, texts

import mallocgame as mg
from fault_cases.campaign import LOST, Try
from fault_cases.processes import Running
from mallocgame._cli.compare import PART
from mallocgame.level_sets.level_set import BUNDLED, INDEX, PROGRAMS

_PROGRAM, _OTHER = "mlp_train_adam_b512.tpu_v4i", "gcn_dense_2048.tpu_v4i"
_COMPARED = "greedy,rent,anneal,priority,portfolio"
_LEVELS = 5  # of the bundled validation levels, so that a benchmark takes seconds


class Command(abc.ABC):
    """A command line whose results lie in a folder."""

    name = ""
    resumes = True  # whether it is run again after a fault
    complete = True  # whether it ends by itself, so that its stream has always the same length

    @abc.abstractmethod
    def arguments(self, folder: pathlib.Path) -> list[object]:
        """What stands behind `mallocgame`."""

    def stream(self, folder: pathlib.Path) -> dict[str, str]:
        """What is the same in every run, by name."""
        return {}

    def kept(self, folder: pathlib.Path) -> dict[str, str]:
        """What must still be there when the command is run again."""
        return self.stream(folder)

    def lost(self, before: dict[str, str], after: dict[str, str]) -> Try | None:
        """Says what is there no more."""
        for name, value in before.items():
            if after.get(name) != value:
                return Try(LOST, f"{name} was {value[:200]}, is {str(after.get(name))[:200]}")
        return None


class Training(Command):
    """`train` of one agent. Its curve is the stream."""

    def _rows(self, folder: pathlib.Path, but: Collection[str] = ("seconds",)) -> dict[str, str]:
        """The curve, but for some columns, by step."""
        path = folder / "out" / "curve.csv"
        if not path.exists():
            return {}
        names, *rows = list(csv.reader(io.StringIO(path.read_text()))) or [[]]
        return {
            f"step {row[1]}": str([v for n, v in zip(names, row, strict=True) if n not in but])
            for row in rows
            if len(row) == len(names)  # A line that the disk cut is no step yet.
        }

    def stream(self, folder: pathlib.Path) -> dict[str, str]:
        return self._rows(folder)


class TrainEgrl(Training):
    name = "train egrl"

    def arguments(self, folder: pathlib.Path) -> list[object]:
        command = ["train", "egrl", f"{_PROGRAM}_16mib", "--out", folder / "out", "--resume"]
        return [*command, "--evaluations", 600, "--config", *texts(EGRL)]

    def stream(self, folder: pathlib.Path) -> dict[str, str]:
        maps = (folder / "out").glob("*.map.json")
        return self._rows(folder) | {path.name: path.read_text() for path in maps}

    def kept(self, folder: pathlib.Path) -> dict[str, str]:
        # The map of an interrupted training is the best so far, and becomes a better one.
        return self._rows(folder)


class TrainMuZero(Training):
    name = "train muzero"
    complete = False

    def arguments(self, folder: pathlib.Path, seconds: float = 3) -> list[object]:
        command = ["train", "muzero", _PROGRAM, "--out", folder / "out", "--resume"]
        return [*command, "--seconds", seconds, "--config", *texts(MUZERO)]

    def stream(self, folder: pathlib.Path) -> dict[str, str]:
        # A run that ends polishes its best plan, and the next one goes on with that: how good it is
        # depends on how often the training was taken up again.
        return self._rows(folder, but=("seconds", "best_ps"))

    def kept(self, folder: pathlib.Path) -> dict[str, str]:
        # The last step is the current one: a checkpoint follows its line.
        return dict(list(self._rows(folder).items())[:-1])


class Benchmark(Command):
    name = "benchmark"

    def arguments(self, folder: pathlib.Path) -> list[object]:
        command = ["benchmark", "--split", "validation", "--levels", _few_levels(folder)]
        players = ["--players", "greedy,rent", "--seconds", "0.2"]
        return [*command, *players, "-o", folder / "out"]

    def stream(self, folder: pathlib.Path) -> dict[str, str]:
        return self._files(folder, runs=False)

    def kept(self, folder: pathlib.Path) -> dict[str, str]:
        # The seconds in a record show whether it was run again.
        return self._files(folder, runs=True)

    def _files(self, folder: pathlib.Path, runs: bool) -> dict[str, str]:
        out = folder / "out"
        plans = [path for path in out.glob("*/*/*/*.json") if path.parent.name != "runs"]
        records = [path.parent / "runs" / path.name for path in plans]
        found = [path for path in records if path.exists()] if runs else plans
        return {str(path.relative_to(out)): path.read_text() for path in found}


class Compare(Command):
    name = "compare --csv"

    def arguments(self, folder: pathlib.Path) -> list[object]:
        command = ["compare", _PROGRAM, _OTHER, "--solvers", _COMPARED]
        return [*command, "--evaluations", 4000, "--seconds", 0, "--csv", folder / "table.csv"]

    def stream(self, folder: pathlib.Path) -> dict[str, str]:
        return {name: row["latency_ps"] for name, row in self._rows(folder).items()}

    def kept(self, folder: pathlib.Path) -> dict[str, str]:
        part = pathlib.Path(f"{folder / 'table.csv'}{PART}")
        rows = self._rows(folder)
        for path in part.glob("*/*.json"):
            row = json.loads(path.read_text())
            rows[f"{row['program']} {row['solver']}"] = row
        return {name: str(row["seconds"]) for name, row in rows.items()}

    def lost(self, before: dict[str, str], after: dict[str, str]) -> Try | None:
        # A comparison that had ended is made anew; of others nothing is run again.
        return None if len(before) == len(after) else super().lost(before, after)

    def _rows(self, folder: pathlib.Path) -> dict[str, dict]:
        path = folder / "table.csv"
        if not path.exists():
            return {}
        rows = csv.DictReader(io.StringIO(path.read_text()))
        return {f"{row['program']} {row['solver']}": row for row in rows}


class Tune(Command):
    name = "xla tune"
    complete = False

    def arguments(self, folder: pathlib.Path) -> list[object]:
        command = ["xla", "tune", "mlp_train_adam_b512", "--seconds", 20]
        return [*command, "-o", folder / "tuned", "--cache", folder / "cache"]

    def kept(self, folder: pathlib.Path) -> dict[str, str]:
        found = {path.name: str(_cost_ps(path)) for path in (folder / "tuned").glob("*.mgx")}
        entries = (folder / "cache").glob("*.zip")
        return found | {path.name: _digest(path) for path in entries}

    def lost(self, before: dict[str, str], after: dict[str, str]) -> Try | None:
        # Programs may become faster ones. The cache's entries stay what they are.
        slower = {
            name: value
            for name, value in before.items()
            if not (name.endswith(".mgx") and int(after.get(name, value)) <= int(value))
        }
        return super().lost(slower, after)


def _cost_ps(path: pathlib.Path) -> int:
    """What a tuned program says that it costs, if its executable is whole."""
    with zipfile.ZipFile(path) as file:
        about = json.loads(file.read("about.json"))
        assert hashlib.sha256(file.read("executable")).hexdigest() == about["sha256"]
    return int(about["about"]["cost_ps"])


class Offline(Command):
    name = "offline"

    def arguments(self, folder: pathlib.Path) -> list[object]:
        return ["offline", "--limit", 8, "-o", folder / "out"]

    def stream(self, folder: pathlib.Path) -> dict[str, str]:
        return {path.stem: _digest(path) for path in sorted(folder.glob("out/*.npz"))}


class Solve(Command):
    name = "solve"
    resumes = False
    complete = False

    def arguments(self, folder: pathlib.Path) -> list[object]:
        command = ["solve", _PROGRAM, "--solver", "anneal", "--seconds", 4]
        return [*command, "-o", folder / "plan.json", "--log", folder / "game.mgr"]

    def stream(self, folder: pathlib.Path) -> dict[str, str]:
        path, program = folder / "plan.json", mg.load_program(_PROGRAM)
        if not path.exists():
            return {}
        return {"the plan": str(mg.validate(program, mg.load_plan(path, program)).ok)}


class MakeLevels(Command):
    """It takes hours, so it is never run to its end."""

    name = "levels make"
    resumes = False
    complete = False

    def arguments(self, folder: pathlib.Path) -> list[object]:
        return ["levels", "make", folder / "out", "--share", 0.01, "--jobs", 1]

    def stream(self, folder: pathlib.Path) -> dict[str, str]:
        programs = (folder / "out" / "programs").glob("*.mgp")
        return {path.name: mg.load_program(str(path)).fingerprint for path in programs}


class References:
    """What the commands give undisturbed, made once for a campaign."""

    def __init__(self, out: pathlib.Path) -> None:
        self._folder = out / "reference"

    def stream(self, command: Command) -> dict[str, str]:
        """What an undisturbed run has written."""
        stream: dict[str, str] = self._of(command)["stream"]
        return stream

    def seconds(self, command: Command) -> float:
        """How long it took from its begin, without the time of importing packages."""
        return float(self._of(command)["seconds"])

    def folder(self, command: Command) -> pathlib.Path:
        """The folder of the undisturbed run."""
        self._of(command)
        return self._folder / command.name.replace(" ", "-")

    def _of(self, command: Command) -> dict:
        kept = self._folder / f"{command.name.replace(' ', '-')}.json"
        if kept.exists():
            return json.loads(kept.read_text())
        folder = kept.with_suffix("")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if isinstance(command, MakeLevels):
            found = {"stream": {}, "seconds": 60.0}
        else:
            print(f"undisturbed: {command.name}", flush=True)
            arguments = command.arguments(folder)
            if isinstance(command, TrainMuZero):  # Longer than those that are compared with it.
                arguments = command.arguments(folder, 20)
            running = Running(arguments, folder)
            running.wait_until_begun()
            ended = running.end()
            if ended.status != 0:
                raise RuntimeError(f"undisturbed, {command.name} ends with {ended}")
            found = {"stream": command.stream(folder), "seconds": ended.since_begun}
            if isinstance(command, TrainMuZero):
                found["seconds"] = 5.0
        kept.write_text(json.dumps(found))
        return found


def _digest(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _few_levels(folder: pathlib.Path) -> pathlib.Path:
    """Makes a set of some bundled levels in a folder."""
    few = folder / "levels"
    if not (few / INDEX).exists():
        index = json.loads((BUNDLED / INDEX).read_text())
        # The last of them are of other families than the first.
        names = [n for n, one in index["programs"].items() if one["split"] == "validation"]
        names = names[:: -(-len(names) // _LEVELS)]
        few.mkdir(exist_ok=True)
        with (
            zipfile.ZipFile(BUNDLED / PROGRAMS) as source,
            zipfile.ZipFile(few / PROGRAMS, "w") as target,
        ):
            for name in names:
                target.writestr(f"{name}.mgp", source.read(f"{name}.mgp"))
        chosen = {name: index["programs"][name] for name in names}
        (few / INDEX).write_text(json.dumps(index | {"programs": chosen}))
    return few


ALL: dict[str, Command] = {
    command.name: command
    for command in (
        Compare(),
        Benchmark(),
        Offline(),
        TrainEgrl(),
        TrainMuZero(),
        Solve(),
        Tune(),
        MakeLevels(),
    )
}
