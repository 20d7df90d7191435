"""`mallocgame train egrl`: each program is a problem, and they take turns.

Each has an agent of its own, or all share one. The folder holds NAME.checkpoint.egrl of each
program, or agent.checkpoint.egrl, and of each program at the end the best map (NAME.map.json,
and with matplotlib a picture of it beside the compiler's, NAME.png) and NAME.report.json. On the
game it also holds the plan and the game that the map comes to (NAME.plan.json, NAME.mgr).
"""

import argparse
import contextlib
import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

import mallocgame as mg
from mallocgame import plots
from mallocgame._cli import console
from mallocgame._cli.rows import print_comparison
from mallocgame._cli.training import Progress, Training, check_fresh, check_same, file_names
from mallocgame._core import write_file
from mallocgame.agents import Egrl, FoundMap
from mallocgame.errors import InvalidInputError
from mallocgame.experiments import Table
from mallocgame.experiments.plan_rows import Row, plan_row, reference

EVALUATIONS = 4000  # of each program since its start, unless it is told
_CHECKPOINT = ".checkpoint.egrl"
# A population is megabytes and a generation takes a tenth of a second, so not each one is written.
_SECONDS_BETWEEN_CHECKPOINTS = 2.0


class EgrlTraining(Training):
    """One agent for each program, or one for all."""

    agent = "egrl"
    columns = (
        "seconds",
        "generation",
        "program",
        "evaluations",
        "best_ps",
        "speedup",
        "gnn_mean",
        "gnn_max",
        "boltzmann_mean",
        "boltzmann_max",
        "gradient_mean",
        "gradient_max",
        "refined_mean",
        "refined_max",
        "critic_loss",
        "entropy",
    )
    across = "evaluations"
    drawn = "baseline's latency over the map's"

    def __init__(
        self, options: argparse.Namespace, config: Mapping[str, str], hardware: mg.Hardware | None
    ) -> None:
        folder, ray = options.out, options.ray
        workers = options.actors if ray is None else ray
        if workers is not None and not options.one_agent:
            option = "--actors" if ray is None else "--ray"
            raise InvalidInputError(f"{option}: egrl needs --one-agent with it")
        if options.actors is not None and ray is not None:
            raise InvalidInputError("--actors: egrl takes either it or --ray")
        os.makedirs(folder, exist_ok=True)
        self._programs = list(dict.fromkeys(options.programs))
        self._paths = [os.path.join(folder, name) for name in file_names(self._programs)]
        self._hardware, self._evaluations = hardware, options.evaluations or EVALUATIONS
        self._hierarchy = None
        if options.hierarchy is not None:
            self._hierarchy = mg.placement.load_hierarchy(options.hierarchy)
            if options.game is not None:
                raise InvalidInputError(
                    f"--game: found {options.game} and --hierarchy, allowed: one of them"
                )
        played: Literal["time", "priority"] = "priority" if self._hierarchy is None else "time"
        if options.game is not None:
            played = options.game
        problems = [
            mg.placement.problem(program, self._hierarchy, hardware, played)
            for program in self._programs
        ]
        groups = [problems] if options.one_agent else [[problem] for problem in problems]
        names = [os.path.join(folder, "agent")] if options.one_agent else self._paths
        self._checkpoints = [name + _CHECKPOINT for name in names]
        self.trainers = [
            _begin(group, path, options.resume, options.seed, config)
            for group, path in zip(groups, self._checkpoints, strict=True)
        ]
        # Of each program: its trainer, and its place among the problems of that.
        self._places = [
            (trainer, place) for trainer in self.trainers for place in range(len(trainer.problems))
        ]
        self._actors = None if workers is None else self.trainers[0].actors(workers)
        self._turn = self._program = 0
        self._saved = [-math.inf] * len(self.trainers)
        turns = {
            program: len(range(place, trainer.generations, len(trainer.problems)))
            for program, (trainer, place) in zip(self._programs, self._places, strict=True)
        }
        super().__init__(folder, turns, options.seconds or 0.0)

    @property
    def steps(self) -> int:
        return sum(trainer.generations for trainer in self.trainers)

    def enough(self) -> bool:
        return all(
            trainer.evaluations >= self._evaluations * len(trainer.problems)
            for trainer in self.trainers
        )

    def run(self, work: console.Work) -> bool:
        with self._actors or contextlib.nullcontext():
            return super().run(work)

    def step(self) -> Progress:
        """Does a generation of the agent that is furthest behind."""
        self._turn = min(range(len(self.trainers)), key=lambda i: self.trainers[i].evaluations)
        trainer = self.trainers[self._turn]
        before = trainer.evaluations
        progress = trainer.step()
        place = progress["problem"]
        self._program = self._places.index((trainer, place))
        speedup = _ratio(trainer.problems[place].baseline_ps, progress["best_ps"])
        return progress | {"graded": trainer.evaluations - before, "speedup": speedup}

    def save(self) -> None:
        if time.monotonic() - self._saved[self._turn] >= _SECONDS_BETWEEN_CHECKPOINTS:
            self._write_checkpoint(self._turn)
            self._saved[self._turn] = time.monotonic()

    def rows(self, progress: Progress) -> list[Row]:
        return [{"program": self._programs[self._program]}]

    def points(self, row: Mapping[str, str]) -> dict[str, float]:
        found = {
            "networks": "gnn_mean",
            "chromosomes": "boltzmann_mean",
            "policy gradient": "gradient_mean",
        }
        means = {f"{who}, mean": float(row[column]) for who, column in found.items()}
        return {"best map": float(row["speedup"]), **means}

    def line(self, progress: Progress, seconds: float) -> str:
        best = (
            f"{progress['best_ps'] / 1e6:,.1f} µs, {progress['speedup']:.3f}x"
            if progress["best_ps"]
            else "no map has fitted yet"
        )
        return (
            f"{self._programs[self._program]}, "
            f"{progress['evaluations']:,} of {self._evaluations:,} maps: {best}, "
            f"{progress['graded'] / seconds:,.0f} maps/s"
        )

    def scalars(self, progress: Progress, seconds: float) -> dict[str, float]:
        groups = {
            "best": ("speedup", "best_reward"),
            "fitness": [
                f"{of}_{what}"
                for of in ("gnn", "boltzmann", "gradient", "refined")
                for what in ("mean", "max")
            ],
            "maps": ("fresh", "penalised"),
            "found": ("best_by_gnn", "best_by_boltzmann", "best_by_gradient", "best_by_refining"),
            "learning": ("critic_loss", "value", "entropy", "actor_gradient", "updates", "replay"),
            "migrants": ("migrants", "migrants_elite", "migrants_selected"),
        }
        program = self._programs[self._program]
        scalars = {
            f"{group}_{name}/{program}": progress[name]
            for group, names in groups.items()
            for name in names
        }
        return scalars | {f"maps_per_second/{program}": progress["graded"] / seconds}

    def finish(self, finished: bool, work: console.Work) -> list[Row]:
        """Writes the best maps, as far as there are any."""
        if finished:
            for i in range(len(self.trainers)):
                self._write_checkpoint(i)
        rows = []
        for (trainer, place), program, path in zip(
            self._places, self._programs, self._paths, strict=True
        ):
            if trainer.generations <= place:
                continue
            work.tell(f"writing {program}")
            problem, found = trainer.problems[place], trainer.best(place)
            row = (
                self._game_row(problem, found, path, trainer.seed)
                if problem.game is not None
                else self._map_row(problem, found)
            )
            row |= {
                "evaluations": len(found.best_ps),
                "seconds": round(self.seconds, 3),
                "seed": trainer.seed,
            }
            _write_json(f"{path}.map.json", _map_document(problem, found))
            _write_json(
                f"{path}.report.json",
                row | {"generations": trainer.generations, "settings": trainer.settings},
            )
            _draw(problem, found, f"{path}.png")
            rows.append(row)
        return rows

    def show(self, rows: Sequence[Row]) -> None:
        for (trainer, place), row in zip(self._places, rows, strict=False):
            problem = trainer.problems[place]
            program = problem.program
            if problem.game is not None:
                hardware = self._hardware or program.hardware
                report = mg.simulate(
                    program,
                    mg.placement.play_map(problem, trainer.best(place).map).plan(),
                    hardware,
                )
                print_comparison(
                    program, hardware, self.agent, report, reference(program, hardware), row
                )
                continue
            console.print_line(f"{program.name} on {row['hierarchy']}, {row['evaluations']:,} maps")
            table = Table(("", "latency µs", "vs compiler"))
            for label, key in (
                ("egrl", "latency_ps"),
                ("compiler", "compiler_ps"),
                ("first come", "first_come_ps"),
                ("all in the slowest", "all_slow_ps"),
            ):
                over = console.times(_ratio(row["compiler_ps"], row[key]))
                table.add(label, console.microseconds(row[key]), over)
            console.print_table(table, gap=2)
            console.print_line("A model of a chip, not a measurement on one.")

    def _write_checkpoint(self, i: int) -> None:
        self.trainers[i].save(self._checkpoints[i])

    def _game_row(
        self, problem: mg.placement.Placement, found: FoundMap, path: str, seed: int
    ) -> Row:
        program = problem.program
        hardware = self._hardware or program.hardware
        state = mg.placement.play_map(problem, found.map)
        plan = state.plan()
        mg.save_plan(plan, program, f"{path}.plan.json")
        mg.save_log(mg.record(state, solver=self.agent, seed=seed), f"{path}.mgr")
        report, xla = mg.simulate(program, plan, hardware), reference(program, hardware)
        row = plan_row(
            program, hardware, report, mg.validate(program, plan, hardware), xla, plan=plan
        )
        return row | {
            "game_latency_ps": state.latency_ps,
            "solver": self.agent,
            "status": "heuristic",
        }

    def _map_row(self, problem: mg.placement.Placement, found: FoundMap) -> dict[str, Any]:
        first_come_ps = problem.search("first-come", 1).latency_ps
        assert self._hierarchy is not None, "without a hierarchy the problem is a game"
        return {
            "program": problem.program.name,
            "hierarchy": self._hierarchy.name,
            "solver": self.agent,
            "valid": problem.evaluate(found.map).moved == 0,
            "latency_ps": found.latency_ps,
            "reward": found.reward,
            "compiler_ps": problem.baseline_ps,
            "first_come_ps": first_come_ps,
            "all_slow_ps": problem.evaluate(
                np.full_like(found.map, len(problem.level_names) - 1)
            ).latency_ps,
            "speedup_vs_compiler": _ratio(problem.baseline_ps, found.latency_ps),
            "speedup_vs_first_come": _ratio(first_come_ps, found.latency_ps),
        }


def _begin(
    problems: list[mg.placement.Placement],
    path: str,
    resume: bool,
    seed: int | None,
    config: Mapping[str, str],
) -> Egrl:
    """Begins an agent, or goes on with its checkpoint."""
    if not check_fresh(path, resume):
        return Egrl(problems, config, seed or 0)
    trainer = Egrl.load(path, problems)
    check_same(path, trainer, seed, config, lambda settings: Egrl(problems, settings))
    return trainer


def _map_document(problem: mg.placement.Placement, found: FoundMap) -> dict[str, Any]:
    """The map, and for people the level of each node's bytes, or how each segment is served.

    Null where there are no bytes, or the segment never came up.
    """
    names, levels = problem.program.instruction_names, problem.level_names
    lies = problem.rectify(found.map)
    counts = (problem.tensor_bytes > 0) & plots.open_nodes(problem, lies)[:, None]
    kinds = ("mode",) if problem.parents.size else ("weights", "activations")
    return {
        "program": problem.program.name,
        "levels": levels,
        "latency_ps": found.latency_ps,
        "map": found.map.tolist(),
        "nodes": [
            {"instruction": names[tick]}
            | {kind: levels[level[i]] if counted[i] else None for i, kind in enumerate(kinds)}
            for tick, level, counted in zip(problem.node_ticks, lies, counts, strict=True)
        ],
    }


def _draw(problem: mg.placement.Placement, found: FoundMap, path: str) -> None:
    """Draws the map beside the compiler's, if matplotlib is there."""
    try:
        plots.check()
    except mg.MallocGameError:
        return
    baseline = "compiler" if problem.game is None else "baseline"
    plots.save_maps(path, problem, {baseline: problem.baseline_map, "egrl": found.map})


def _write_json(path: str, document: dict[str, Any]) -> None:
    """Writes a line for each key, and for each row of a table."""

    def text(value: Any) -> str:
        rows = isinstance(value, list) and value and isinstance(value[0], dict)
        return (
            "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]" if rows else json.dumps(value)
        )

    lines = ",\n ".join(f"{json.dumps(key)}: {text(value)}" for key, value in document.items())
    write_file(path, f"{{\n {lines}\n}}\n".encode())


def _ratio(above: int, below: int) -> float:
    return above / below if below else 1.0  # A program may take no time at all.
