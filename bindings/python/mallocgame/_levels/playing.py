"""Players on levels: each solves each level with one core, and what it found is kept in files.

FOLDER/PLAYER/SEED/TIME/LEVEL.json         the plan; FOLDER/PLAYER/SEED/TIME is a submission
FOLDER/PLAYER/SEED/TIME/runs/LEVEL.json    what it costs, and what was found in time
"""

import concurrent.futures
import dataclasses
import functools
import json
import multiprocessing
import os
import pathlib
import signal
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from mallocgame._core import RULES_VERSION, read_file, simulate, solver_names, validate, write_file
from mallocgame._levels import Level, levels
from mallocgame._levels.judging import Run
from mallocgame._solve import solve
from mallocgame.errors import InvalidInputError, MallocGameError, MissingFileError

GAMES = ("time", "order")

# A solver looks at the clock between two games. What it finds by this factor of its time counts.
_LATE = 1.05


@dataclasses.dataclass(frozen=True)
class Player:
    """A solver, and the game that it plays."""

    solver: str
    game: str = "time"

    @staticmethod
    def named(text: str) -> "Player":
        """Returns the player SOLVER or SOLVER:order. InvalidInputError: there is none."""
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

    level: str
    split: str
    levels: pathlib.Path  # the set
    fingerprint: str | None  # of the program
    player: Player
    seed: int
    seconds: float
    folder: pathlib.Path  # of the player, the seed and the time

    @property
    def plan(self) -> pathlib.Path:
        return self.folder / f"{self.level}.json"

    @property
    def record(self) -> pathlib.Path:
        return self.folder / "runs" / f"{self.level}.json"

    @property
    def settings(self) -> dict[str, Any]:
        """What must be the same for a result that is kept."""
        return {
            "player": self.player.name,
            "seed": self.seed,
            "seconds": self.seconds,
            "program": self.fingerprint,
            "rules": RULES_VERSION,
        }


def cores() -> list[int]:
    """Returns the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def play(
    players: Sequence[Player],
    on: Sequence[Level],
    folder: str | os.PathLike[str],
    budgets: Sequence[float],
    seeds: int = 1,
    jobs: int = 1,
    done: Callable[[str], object] = lambda what: None,
) -> list[Run]:
    """Lets each player solve each level once with each budget and each of the seeds 0, 1 ...

    on: levels of one split. budgets: seconds since the solver's start; it knows how many it has.
    Reading the level is not counted. jobs: processes that work side by side, each on a core of its
    own, the player's threads included. folder: results are written there when they come, and what
    is there is not run again. done: is called with the player and the level of each run.

    InvalidInputError: the folder has a result with other settings, a solver can't play the game, or
    there are more jobs than cores. MallocGameError: a plan is invalid, or a process ended.
    FileAccessError. Interrupted, it goes on where it was when it is called again.
    """
    if not 1 <= jobs <= len(cores()):
        raise InvalidInputError(
            f"jobs: found {jobs}, allowed: 1 to {len(cores())}, a core for each"
        )
    # All players of a level come after another, so that they share the machine's moods.
    wanted = [
        _Job(
            level=level.name,
            split=level.split,
            levels=level.level_set.folder,
            fingerprint=level.features.get("fingerprint"),
            player=player,
            seed=seed,
            seconds=seconds,
            folder=pathlib.Path(folder) / player.name / str(seed) / f"{seconds:g}s",
        )
        for level in on
        for seed in range(seeds)
        for player in players
        for seconds in budgets
    ]
    runs = {job: run for job in wanted if (run := _load(job)) is not None}
    for job in runs:
        done(f"{job.player.name} on {job.level}")
    missing = [job for job in wanted if job not in runs]
    for parent in {job.record.parent for job in missing}:
        parent.mkdir(parents=True, exist_ok=True)
    if missing:
        _side_by_side(missing, jobs, done)
    for job in missing:
        run = _load(job)
        assert run is not None
        runs[job] = run
    return [runs[job] for job in wanted]


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
            level=job.level,
            player=job.player.name,
            seed=job.seed,
            budget_s=job.seconds,
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


def _side_by_side(missing: Sequence[_Job], jobs: int, done: Callable[[str], object]) -> None:
    """Runs jobs in processes, and writes what they find."""
    context = multiprocessing.get_context("spawn")  # the caller may have threads
    free = context.SimpleQueue()
    for core in cores()[:jobs]:
        free.put(core)
    with concurrent.futures.ProcessPoolExecutor(jobs, context, _start_worker, (free,)) as pool:
        running = {pool.submit(_solve, job): job for job in missing}
        try:
            for future in concurrent.futures.as_completed(running):
                job = running[future]
                plan, record = future.result()
                write_file(os.fsencode(job.plan), plan)
                write_file(os.fsencode(job.record), (json.dumps(record) + "\n").encode())
                done(f"{job.player.name} on {job.level}")
        except BrokenProcessPool:
            raise MallocGameError(
                "a process of a player has ended; run it again to go on"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


def _start_worker(free: Any) -> None:
    """Gives a process a core of its own."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a word
    core = free.get()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


@functools.lru_cache(maxsize=1)
def _levels(split: str, folder: pathlib.Path) -> dict[str, Level]:
    return {level.name: level for level in levels(split, folder)}


def _solve(job: _Job) -> tuple[bytes, dict[str, Any]]:
    """Returns the plan as JSON, and the record of the run."""
    level = _levels(job.split, job.levels)[job.level]
    game = level.game(seed=job.seed, game=job.player.game)
    program, hardware = game.program, game.hardware
    result = solve(game, job.player.solver, job.seconds, job.seed)
    verdict = validate(program, result.plan, hardware)
    if not verdict:
        raise MallocGameError(
            f"{job.player.name} on {job.level} with seed {job.seed}: its plan is invalid: "
            f"{verdict.rule}: {verdict.message}"
        )
    latency_ps = simulate(program, result.plan, hardware).latency_ps
    end = _LATE * job.seconds
    in_time = [found_ps for seconds, found_ps, _ in result.curve if seconds <= end]
    if result.seconds <= end:
        in_time.append(latency_ps)
    return result.plan.to_json(program).encode(), {
        "settings": job.settings,
        "latency_ps": latency_ps,
        "in_time_ps": in_time[-1] if in_time else game.all_main_ps,
        "seconds": result.seconds,
    }
