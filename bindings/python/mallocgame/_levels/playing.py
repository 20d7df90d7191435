"""Players on levels: each solves each level with one core, and what it found is kept in files.

FOLDER/PLAYER/SEED/BUDGET/LEVEL.json         the plan; FOLDER/PLAYER/SEED/BUDGET is a submission
FOLDER/PLAYER/SEED/BUDGET/runs/LEVEL.json    what it costs, and what was found within the budget
"""

import contextlib
import dataclasses
import json
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from mallocgame._core import (
    PRIORITY_RULES_VERSION,
    RULES_VERSION,
    Game,
    Hardware,
    Program,
    read_file,
    simulate,
    solver_names,
    validate,
    write_file,
)
from mallocgame._jobs import Cluster, Workers, cores, run_jobs
from mallocgame._levels import MIN_BUFFER_BYTES, Level
from mallocgame._levels.judging import Run
from mallocgame._levels.scores import Budget
from mallocgame._solve import solve
from mallocgame.errors import InvalidInputError, MallocGameError, MissingFileError

GAMES = ("time", "priority")

# A solver looks at the clock between two games. What it finds by this factor of its time counts.
_LATE = 1.05


@dataclasses.dataclass(frozen=True)
class Player:
    """A solver, and the game that it plays."""

    solver: str
    game: str = "time"

    @staticmethod
    def named(text: str) -> "Player":
        """Returns the player SOLVER or SOLVER:priority. InvalidInputError: there is none."""
        solver, colon, game = text.partition(":")
        if solver not in solver_names():
            raise InvalidInputError(f"found '{solver}', allowed: {', '.join(solver_names())}")
        if colon and game not in GAMES:
            raise InvalidInputError(f"{text}: found game '{game}', allowed: {', '.join(GAMES)}")
        return Player(solver, game or "time")

    @property
    def name(self) -> str:
        return self.solver if self.game == "time" else f"{self.solver}:{self.game}"


@dataclasses.dataclass(frozen=True)
class _Job:
    """One player on one level."""

    level: Level
    player: Player
    seed: int
    budget: Budget
    folder: pathlib.Path  # of the player, the seed and the budget

    @property
    def plan(self) -> pathlib.Path:
        return self.folder / f"{self.level.name}.json"

    @property
    def record(self) -> pathlib.Path:
        return self.folder / "runs" / f"{self.level.name}.json"

    @property
    def settings(self) -> dict[str, Any]:
        """What must be the same for a result that is kept."""
        return {
            "player": self.player.name,
            "seed": self.seed,
            "budget": dataclasses.asdict(self.budget),
            "program": self.level.features.get("fingerprint"),
            "rules": PRIORITY_RULES_VERSION if self.player.game == "priority" else RULES_VERSION,
        }


@dataclasses.dataclass(frozen=True, eq=False)
class _Task:
    """A job as it goes to who does it."""

    level: str
    program: Program
    hardware: Hardware
    player: Player
    seed: int
    budget: Budget

    @property
    def name(self) -> str:
        return f"{self.player.name} on {self.level} with seed {self.seed} and {self.budget}"


def play(
    players: Sequence[Player],
    on: Sequence[Level],
    folder: str | os.PathLike[str],
    budgets: Sequence[Budget],
    seeds: int = 1,
    workers: Workers = 1,
    done: Callable[[str], object] = lambda what: None,
) -> list[Run]:
    """Lets each player solve each level once with each budget and each of the seeds 0, 1 ...

    on: levels of one split. budgets: time since the solver's start, or games; it knows how much it
    has. Reading the level is not counted. With games the result depends on the seed only, and one
    that took more games than allowed doesn't count. workers: each has a core of its own, the
    player's threads included. folder: results are written there when they come, and what is there
    is not run again. done: is called with the player and the level of each run.

    InvalidInputError: the folder has a result with other settings, a solver can't play the game, or
    there are more processes than cores. MallocGameError: runs failed again and again, as with an
    invalid plan. FileAccessError. Interrupted, it goes on where it was when it is called again.
    """
    if not isinstance(workers, Cluster) and not 1 <= workers <= len(cores()):
        raise InvalidInputError(
            f"jobs: found {workers}, allowed: 1 to {len(cores())}, a core for each"
        )
    # All players of a level come after another, so that they share the machine's moods.
    wanted = [
        _Job(
            level=level,
            player=player,
            seed=seed,
            budget=budget,
            folder=pathlib.Path(folder) / player.name / str(seed) / _name_of(budget),
        )
        for level in on
        for seed in range(seeds)
        for player in players
        for budget in budgets
    ]
    runs = {job: run for job in wanted if (run := _load(job)) is not None}
    for job in runs:
        done(f"{job.player.name} on {job.level.name}")
    missing = [job for job in wanted if job not in runs]
    for parent in {job.record.parent for job in missing}:
        parent.mkdir(parents=True, exist_ok=True)
    programs = {job.level.program_name: job.level for job in missing}
    loaded = {name: level.load_program() for name, level in programs.items()}
    tasks = {
        _Task(
            job.level.name,
            loaded[job.level.program_name],
            job.level.hardware(),
            job.player,
            job.seed,
            job.budget,
        ): job
        for job in missing
    }
    with contextlib.closing(
        run_jobs(_solve, tasks, workers, pinned=True, name=lambda task: task.name)
    ) as finished:
        for task, (plan, found) in finished:
            job = tasks[task]
            record = {"settings": job.settings} | found
            write_file(os.fsencode(job.plan), plan)
            write_file(os.fsencode(job.record), (json.dumps(record) + "\n").encode())
            run = _load(job)
            assert run is not None, "it has just been written"
            runs[job] = run
            done(f"{job.player.name} on {job.level.name}")
    return [runs[job] for job in wanted]


def _name_of(budget: Budget) -> str:
    return f"{budget.games}games" if budget.games else f"{budget.seconds:g}s"


def _load(job: _Job) -> Run | None:
    """Returns the run that is in the files. InvalidInputError: it has other settings."""
    try:
        text = read_file(os.fsencode(job.record))
    except MissingFileError:
        return None
    if not job.plan.exists():
        return None
    try:
        record = json.loads(text)
        found = dict(record["settings"])
        run = Run(
            level=job.level.name,
            player=job.player.name,
            seed=job.seed,
            budget=job.budget,
            plan=job.plan,
            latency_ps=int(record["latency_ps"]),
            in_time_ps=int(record["in_time_ps"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInputError(f"{job.record}: no result of a benchmark ({error!r})") from None
    for name, value in job.settings.items():
        if found.get(name) != value:
            raise InvalidInputError(
                f"{job.record}: found a result with {name} {found.get(name)}, allowed: {value}; "
                "give another folder, or delete this one"
            )
    return run


def _solve(task: _Task) -> tuple[bytes, dict[str, Any]]:
    """Returns the plan as JSON, and what the record of the run says beside its settings."""
    program, hardware = task.program, task.hardware
    game = Game(
        program, hardware, seed=task.seed, game=task.player.game, min_buffer_bytes=MIN_BUFFER_BYTES
    )
    budget = task.budget
    result = solve(game, task.player.solver, budget.seconds, task.seed, evaluations=budget.games)
    verdict = validate(program, result.plan, hardware)
    if not verdict:
        raise MallocGameError(f"its plan is invalid: {verdict.rule}: {verdict.message}")
    latency_ps = simulate(program, result.plan, hardware).latency_ps
    if budget.games:
        in_time = [latency_ps] if result.evaluations <= budget.games else []
    else:
        end = _LATE * budget.seconds
        in_time = [found_ps for seconds, found_ps, _ in result.curve if seconds <= end]
        if result.seconds <= end:
            in_time.append(latency_ps)
    return result.plan.to_json(program).encode(), {
        "latency_ps": latency_ps,
        "in_time_ps": in_time[-1] if in_time else game.all_main_ps,
        "seconds": result.seconds,
        "games": result.evaluations,
    }
