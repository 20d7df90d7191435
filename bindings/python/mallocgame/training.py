"""What `mallocgame train muzero` does: trains, shows how it goes, keeps a checkpoint of every step, and writes what was found.

In the folder: checkpoint.muzero, curve.csv (one line a step and program), tensorboard/, and at the end for each program its best
plan (NAME.plan.json), report (NAME.report.json) and game (NAME.mgr).
"""

import csv
import json
import math
import os
import sys
import time

import mallocgame as mg
from mallocgame.agents import MuZero
from mallocgame.errors import InvalidInputError

CHECKPOINT = "checkpoint.muzero"
CURVE = "curve.csv"
_POLISH_SHARE = 0.05  # of the time, for local search over the best plans at the end
_DEMONSTRATION_GAMES = 1000  # of annealing for each second of training, unless the settings say another number
_COLUMNS = ("seconds", "iteration", "program", "best_ps", "mean_return", "games", "evaluations", "value_error", "policy_loss",
            "value_loss")  # fmt: skip


def settings(texts: list[str]) -> dict[str, str]:
    """Settings from `key=value` texts."""
    pairs = [text.partition("=") for text in texts]
    for text, (name, equals, value) in zip(texts, pairs, strict=True):
        if not (name and equals and value):
            raise InvalidInputError(f"--config: found '{text}', allowed: key=value")
    return {name: value for name, _, value in pairs}


class Training:
    """One run of the command in one folder."""

    def __init__(self, programs: list[str], folder: str, resume: bool, seed: int | None, config: dict[str, str],
                 hardware: mg.Hardware | None, seconds: float) -> None:  # fmt: skip
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self._checkpoint = os.path.join(folder, CHECKPOINT)
        found = os.path.exists(self._checkpoint)
        if found and not resume:
            raise InvalidInputError(f"{self._checkpoint}: is there already; --resume goes on with it")
        if found:
            self.trainer = MuZero.load(self._checkpoint, programs, hardware=hardware)
            self._check_same(seed, config)
        else:
            if seconds > 0:
                config = {"demonstration_games": str(int(_DEMONSTRATION_GAMES * seconds))} | config
            self.trainer = MuZero(programs, config, seed or 0, hardware=hardware)
        self.hardware = hardware
        self._xla = [_xla_ps(program, hardware) for program in self.trainer.programs]
        self._names = _file_names(self.trainer.names)
        self.seconds = self._cut_curve()  # trained so far, in all runs
        self._board = _board(os.path.join(folder, "tensorboard"), self.trainer.iterations)

    def run(self, seconds: float, work) -> bool:
        """Trains until the time is up, but for what polishing takes. False: Ctrl-C ended it. seconds 0: no limit."""
        begin = time.monotonic()
        work.tell("demonstrations")
        try:
            while True:
                step_begin = time.monotonic()
                progress = self.trainer.step()
                now = time.monotonic()
                self.seconds += now - step_begin
                self.trainer.save(self._checkpoint)
                self._tell(progress, now - step_begin, work)
                if seconds > 0 and now - begin >= seconds * (1 - _POLISH_SHARE):
                    return True
        except KeyboardInterrupt:
            return False
        finally:
            if self._board is not None:
                self._board.close()

    def results(self, seconds: float, interrupted: bool, work) -> list[mg.SolveResult]:
        """The best plans, polished unless Ctrl-C ended the training, written with their reports and games."""
        if self.trainer.iterations == 0:
            return []
        results = []
        share = seconds * _POLISH_SHARE / len(self._names)
        for i, (program, name) in enumerate(zip(self.trainer.programs, self._names, strict=True)):
            work.tell(f"polishing {program.name}")
            result = self.trainer.best(i) if interrupted else self.trainer.polish(i, share)
            game = self.trainer.best_game(i)
            path = os.path.join(self.folder, name)
            mg.save_plan(result.plan, program, f"{path}.plan.json")
            mg.save_log(mg.record(game), f"{path}.mgr")
            with open(f"{path}.report.json", "w", encoding="utf-8") as file:
                json.dump(self._report(i, result, game), file, indent=2)
            results.append(result)
        if not interrupted:
            self.trainer.save(self._checkpoint)  # with what polishing found
        return results

    def _report(self, i: int, result: mg.SolveResult, game: mg.SolveResult) -> dict:
        report = result.report
        return {
            "program": self.trainer.names[i],
            "solver": "muzero",
            "found_by": result.found_by,
            "latency_ps": report.latency_ps,
            "latency_cold_ps": report.latency_cold_ps,
            "all_main_ps": report.all_main_ps,
            "xla_ps": self._xla[i],
            "game_ps": game.report.latency_ps,
            "game_found_by": game.found_by,
            "iterations": self.trainer.iterations,
            "seconds": round(self.seconds, 3),
            "seed": self.trainer.seed,
            "settings": self.trainer.settings,
        }

    def _check_same(self, seed: int | None, config: dict[str, str]) -> None:
        if seed is not None and seed != self.trainer.seed:
            raise InvalidInputError(f"--seed: found {seed}, but {self._checkpoint} was begun with {self.trainer.seed}")
        # Through a trainer of its own, because 1e-3 and 0.001 are the same.
        for name, value in MuZero(self.trainer.programs, config).settings.items() if config else ():
            if name in config and value != self.trainer.settings[name]:
                raise InvalidInputError(
                    f"--config: found {name}={value}, but {self._checkpoint} was begun with {self.trainer.settings[name]}"
                )

    def _cut_curve(self) -> float:
        """The curve without the lines of steps that no checkpoint has seen; returns the seconds trained before."""
        path = os.path.join(self.folder, CURVE)
        rows = []
        if os.path.exists(path):
            with open(path, newline="", encoding="utf-8") as file:
                rows = [row for row in csv.DictReader(file) if int(row["iteration"]) < self.trainer.iterations]
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, _COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        return float(rows[-1]["seconds"]) if rows else 0.0

    def _tell(self, progress: dict, seconds: float, work) -> None:
        known = [xla / best for xla, best in zip(self._xla, progress["best_ps"], strict=True) if xla]
        ratio = f", {math.exp(sum(map(math.log, known)) / len(known)):.4f}x XLA" if known else ""
        best = f"{progress['best_ps'][0] / 1e6:,.1f} µs" if len(self._xla) == 1 else f"{len(self._xla)} programs"
        work.tell(f"step {progress['iteration']}: {best}{ratio}, value error {progress['value_error']:.1f} ‰, "
                  f"{progress['evaluations'] / seconds:,.0f} evaluations/s")  # fmt: skip
        with open(os.path.join(self.folder, CURVE), "a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, _COLUMNS, extrasaction="ignore", lineterminator="\n")
            for i, name in enumerate(self.trainer.names):
                writer.writerow({**progress, "seconds": f"{self.seconds:.3f}", "program": name,
                                 "best_ps": progress["best_ps"][i], "mean_return": progress["mean_return"][i]})  # fmt: skip
        if self._board is not None:
            self._draw(progress, seconds)

    def _draw(self, progress: dict, seconds: float) -> None:
        step = progress["iteration"]
        for i, name in enumerate(self.trainer.names):
            scalars = {"best_us": progress["best_ps"][i] / 1e6, "return": progress["mean_return"][i]}
            if self._xla[i]:
                scalars["best_speedup_vs_xla"] = self._xla[i] / progress["best_ps"][i]
            for kind, value in scalars.items():
                if not math.isnan(value):
                    self._board.add_scalar(f"{kind}/{name}", value, step)
        for kind, names in {
            "loss": ("policy_loss", "value_loss", "reward_loss", "consistency_loss"),
            "learning": ("value_error", "policy_entropy", "gradient_norm", "learning_rate", "replay_steps"),
            "search": ("depth", "entropy"),
        }.items():
            for name in names:
                self._board.add_scalar(f"{kind}/{name}", progress[name], step)
        for name in ("games", "varied", "searches", "evaluations"):
            self._board.add_scalar(f"per_second/{name}", progress[name] / seconds, step)


def _xla_ps(program: mg.Program, hardware: mg.Hardware | None) -> int | None:
    if program.xla_plan is None or hardware not in (None, program.hardware):
        return None
    return mg.simulate(program, program.xla_plan).latency_ps


def _file_names(programs: list[str]) -> list[str]:
    """What the programs' files are called, no two alike."""
    names: list[str] = []
    for program in programs:
        base = os.path.basename(program).removesuffix(".mgp") or "program"
        same = sum(name == base or name.startswith(f"{base}-") for name in names)
        names.append(f"{base}-{same + 1}" if base in names else base)
    return names


def _board(folder: str, step: int):
    """TensorBoard's writer; None where TensorBoard isn't installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        print("mallocgame train: no TensorBoard (pip install tensorboard); curve.csv has the numbers", file=sys.stderr)
        return None
    return SummaryWriter(folder, purge_step=step)
