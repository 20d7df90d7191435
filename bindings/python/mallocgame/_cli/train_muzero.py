"""`mallocgame train muzero`: one agent for all programs, demonstrations first, polishing last.

The folder holds checkpoint.muzero, and for each program its best plan (NAME.plan.json), report
(NAME.report.json) and game (NAME.mgr).
"""

import argparse
import contextlib
import functools
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import mallocgame as mg
from mallocgame._cli import console
from mallocgame._cli.console import Work
from mallocgame._cli.rows import print_comparison
from mallocgame._cli.training import Progress, Training, check_fresh, check_same, file_names
from mallocgame._core import write_file
from mallocgame.agents import POLISH_SHARE, MuZero, begin_muzero
from mallocgame.agents.muzero import settings_of
from mallocgame.errors import InvalidInputError
from mallocgame.experiments.plan_rows import Row, geometric_mean, plan_row, reference

SECONDS = 600.0  # of a training, unless it is told
_CHECKPOINT = "checkpoint.muzero"


class MuZeroTraining(Training):
    """One agent for all programs."""

    agent = "muzero"
    columns = (
        "seconds",
        "iteration",
        "program",
        "best_ps",
        "mean_return",
        "games",
        "evaluations",
        "value_error",
        "policy_loss",
        "value_loss",
    )
    across = "seconds"
    drawn = "saved of the all-main latency"

    def __init__(
        self, options: argparse.Namespace, config: Mapping[str, str], hardware: mg.Hardware | None
    ) -> None:
        programs, folder, game, seed = options.programs, options.out, options.game, options.seed
        seconds = SECONDS if options.seconds is None else options.seconds
        config = _with_game(config, game)
        os.makedirs(folder, exist_ok=True)
        self._checkpoint = os.path.join(folder, _CHECKPOINT)
        if check_fresh(self._checkpoint, options.resume):
            self.trainer = MuZero.load(
                self._checkpoint, programs, hardware=hardware, prices=options.prices
            )
            again = functools.partial(MuZero, programs, hardware=hardware)
            check_same(self._checkpoint, self.trainer, seed, config, again)
            self._check_game(game)
        else:
            if options.actors is not None:
                config = {"groups": str(options.actors), **config}
            own: dict[str, Any] = {
                "hardware": hardware,
                "tuned_from": options.tuned_from,
                "game": game,
                "prices": options.prices,
            }
            self.trainer = (
                MuZero(programs, config, seed or 0, **own)
                if seconds <= 0
                else begin_muzero(programs, seconds, config, seed or 0, **own)
            )
        workers = options.actors if options.ray is None else options.ray
        self._actors = workers and self.trainer.actors(workers, options.most_stale)
        # MuZero as published anneals nothing.
        share = 0.0 if self.trainer.settings["preset"] == "paper" else POLISH_SHARE
        self._polish_seconds = seconds * share / len(self.trainer.names)
        self._polishes = share > 0
        references = map(reference, self.trainer.programs, self.trainer.hardware)
        self._xla = [own.report and own.report.latency_ps for own in references]
        self._names = file_names(self.trainer.names)
        steps = dict.fromkeys(self.trainer.names, self.trainer.iterations)
        super().__init__(folder, steps, seconds * (1 - share))

    def _check_game(self, game: str | None) -> None:
        """Refuses another game than the checkpoint's; fine and priority have settings in common."""
        if game is None or not self.trainer.iterations:
            return
        played = self.trainer.best_game().game
        begun = "fine" if getattr(played.options, "exact_stalls", False) else played.kind
        if game != begun:
            raise InvalidInputError(
                f"--game: found {game}, but {self._checkpoint} was begun with {begun}"
            )

    @property
    def steps(self) -> int:
        return self.trainer.iterations

    def run(self, work: Work) -> bool:
        work.tell("demonstrations")
        with self._actors or contextlib.nullcontext():
            return super().run(work)

    def step(self) -> Progress:
        return self.trainer.step()

    def save(self) -> None:
        self.trainer.save(self._checkpoint)

    def finish(self, finished: bool, work: Work) -> list[Row]:
        """Writes the best plans with their reports and games, polished unless Ctrl-C came."""
        if self.trainer.iterations == 0:
            return []
        rows = []
        for i, (program, name) in enumerate(zip(self.trainer.programs, self._names, strict=True)):
            result = self.trainer.best(i)
            if finished and self._polishes:
                work.tell(f"polishing {program.name}")
                result = self.trainer.polish(i, self._polish_seconds)
            game = self.trainer.best_game(i)
            path = os.path.join(self.folder, name)
            mg.save_plan(result.plan, program, f"{path}.plan.json", order=result.order)
            mg.save_log(mg.record(game), f"{path}.mgr")
            report = json.dumps(self._report(i, result, game), indent=2)
            write_file(f"{path}.report.json", report.encode())
            rows.append(self._row(i, result, game))
        if finished:
            self.save()  # The checkpoint then has what polishing found.
        return rows

    def show(self, rows: Sequence[Row]) -> None:
        for i, (program, row) in enumerate(zip(self.trainer.programs, rows, strict=False)):
            own = self.trainer.hardware[i]
            print_comparison(
                program, own, self.agent, self.trainer.best(i).report, reference(program, own), row
            )
            if row["faster_at_both"] is False:
                console.print_line(
                    "Not faster than XLA's own plan at both sets of prices: keep XLA's."
                )

    def rows(self, progress: Progress) -> list[Row]:
        return [
            {
                "program": name,
                "best_ps": progress["best_ps"][i],
                "mean_return": progress["mean_return"][i],
            }
            for i, name in enumerate(self.trainer.names)
        ]

    def points(self, row: Mapping[str, str]) -> dict[str, float]:
        i = self.trainer.names.index(row["program"])
        all_main, xla = self.trainer.best(i).report.all_main_ps, self._xla[i]
        points = {
            "games of self-play, mean": float(row["mean_return"]),
            "best plan": 1 - int(row["best_ps"]) / all_main,
        }
        return points | ({"XLA's plan": 1 - xla / all_main} if xla else {})

    def line(self, progress: Progress, seconds: float) -> str:
        mean = geometric_mean(
            xla / best for xla, best in zip(self._xla, progress["best_ps"], strict=True) if xla
        )
        ratio = "" if mean is None else f", {mean:.4f}x XLA"
        best = (
            f"{progress['best_ps'][0] / 1e6:,.1f} µs"
            if len(self._xla) == 1
            else f"{len(self._xla)} programs"
        )
        return (
            f"step {progress['iteration']}: {best}{ratio}, "
            f"value error {progress['value_error']:.1f} ‰, "
            f"{progress['evaluations'] / seconds:,.0f} evaluations/s"
        )

    def scalars(self, progress: Progress, seconds: float) -> dict[str, float]:
        scalars: dict[str, float] = {}
        for i, name in enumerate(self.trainer.names):
            scalars |= {
                f"best_us/{name}": progress["best_ps"][i] / 1e6,
                f"return/{name}": progress["mean_return"][i],
            }
            xla = self._xla[i]
            if xla:
                scalars[f"best_speedup_vs_xla/{name}"] = xla / progress["best_ps"][i]
        for kind, names in {
            "loss": ("policy_loss", "value_loss", "reward_loss"),
            "learning": (
                "value_error",
                "policy_entropy",
                "gradient_norm",
                "learning_rate",
                "replay_steps",
                "staleness",
                "stale",
            ),
            "search": ("depth", "entropy"),
        }.items():
            scalars |= {f"{kind}/{name}": progress[name] for name in names}
        names = ("games", "varied", "searches", "evaluations")
        return scalars | {f"per_second/{name}": progress[name] / seconds for name in names}

    def _row(self, i: int, result: mg.SolveResult, game: mg.SolveResult) -> Row:
        program, own = self.trainer.programs[i], self.trainer.hardware[i]
        row = plan_row(
            program,
            own,
            result.report,
            mg.validate(result.program, result.plan, own),
            reference(program, own),
            result,
            plan=result.plan,
            order=result.order,
        )
        speedups = row["speedup_vs_xla"], row["speedup_calibrated_vs_xla"]
        known = None not in speedups
        return row | {
            # The rule of `xla tune`: faster than XLA's plan at both sets of prices.
            "faster_at_both": min(speedups) > 1 if known else None,
            "found_by": result.found_by,
            "game_latency_ps": game.report.latency_ps,
            "game_found_by": game.found_by,
            "seconds": round(self.seconds, 3),
        }

    def _report(self, i: int, result: mg.SolveResult, game: mg.SolveResult) -> dict[str, Any]:
        report = result.report
        return {
            "program": self.trainer.names[i],
            "solver": "muzero",
            "found_by": result.found_by,
            "latency_ps": report.latency_ps,
            "latency_cold_ps": report.latency_cold_ps,
            "all_main_ps": report.all_main_ps,
            "xla_ps": self._xla[i],
            "game_latency_ps": game.report.latency_ps,
            "game_found_by": game.found_by,
            "iterations": self.trainer.iterations,
            "seconds": round(self.seconds, 3),
            "seed": self.trainer.seed,
            "settings": self.trainer.settings,
        }


def _with_game(config: Mapping[str, str], game: str | None) -> dict[str, str]:
    """Adds the settings of a game. InvalidInputError: some are given otherwise."""
    of_game, _ = settings_of(game)
    for name, one in of_game.items():
        if config.get(name, one) != one:
            raise InvalidInputError(f"--game: found {game}, but --config has {name}={config[name]}")
    return {**config, **of_game}
