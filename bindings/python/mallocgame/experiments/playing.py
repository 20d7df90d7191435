"""Players on levels: each solves each level with one core, and what it found is kept in files.

FOLDER/PLAYER/SEED/BUDGET/LEVEL.json         the plan; FOLDER/PLAYER/SEED/BUDGET is a submission
FOLDER/PLAYER/SEED/BUDGET/runs/LEVEL.json    what it costs, and what was found within the budget
"""

import dataclasses
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mallocgame import games
from mallocgame._core import (
    Game,
    Hardware,
    Program,
    simulate,
    solver_game,
    solver_names,
    validate,
    write_file,
)
from mallocgame._jobs import Cluster, Workers, cores
from mallocgame._solve import solve
from mallocgame.errors import InvalidInputError, MallocGameError
from mallocgame.experiments.grid import Cell, Grid
from mallocgame.experiments.judging import Run
from mallocgame.experiments.running import run
from mallocgame.experiments.scores import Budget
from mallocgame.level_sets import MIN_BUFFER_BYTES, Level

GAMES = ("time", "priority", "fine")

# A solver looks at the clock between two games. What it finds by this factor of its time counts.
_LATE = 1.05
_RUNS = "runs"


@dataclasses.dataclass(frozen=True)
class Player:
    """A solver, and the game that it plays."""

    solver: str
    game: str = ""  # none: the solver's own

    def __post_init__(self) -> None:
        object.__setattr__(self, "game", self.game or solver_game(self.solver))

    @staticmethod
    def named(text: str) -> "Player":
        """Returns the player SOLVER or SOLVER:GAME. InvalidInputError: there is none."""
        solver, colon, game = text.partition(":")
        if solver not in solver_names():
            raise InvalidInputError(f"found '{solver}', allowed: {', '.join(solver_names())}")
        if colon and game not in GAMES:
            raise InvalidInputError(f"{text}: found game '{game}', allowed: {', '.join(GAMES)}")
        return Player(solver, game)

    @property
    def name(self) -> str:
        own = self.game == solver_game(self.solver)
        return self.solver if own else f"{self.solver}:{self.game}"


class _Problem:
    """A level as it goes to who plays it: machines of a cluster don't see the folder of its set."""

    def __init__(self, level: Level) -> None:
        self.name, self.level = level.name, level

    def load(self) -> tuple[Program, Hardware]:
        """Reads the program."""
        return self.level.load_program(), self.level.hardware()

    def __reduce__(self) -> tuple[Any, ...]:
        return _Loaded, (self.name, *self.load())


@dataclasses.dataclass(frozen=True)
class _Loaded:
    """What a _Problem is in another process."""

    name: str
    program: Program
    hardware: Hardware

    def load(self) -> tuple[Program, Hardware]:
        return self.program, self.hardware


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
    grid = Grid(
        level=map(_Problem, on), seed=range(seeds), player=dict.fromkeys(players), budget=budgets
    )

    def path(cell: Cell, inner: str = "") -> pathlib.Path:
        own = pathlib.Path(cell["player"].name, str(cell["seed"]), cell["budget"].name, inner)
        return folder / own / f"{cell['level'].name}.json"

    def keep(cell: Cell, found: tuple[bytes, Mapping[str, Any]]) -> Mapping[str, Any]:
        path(cell).parent.mkdir(parents=True, exist_ok=True)
        write_file(path(cell), found[0])
        return found[1]

    folder = pathlib.Path(folder)
    for cell in grid:
        if not path(cell).exists():  # A record without its plan is of no use.
            path(cell, _RUNS).unlink(missing_ok=True)
    rows = run(
        _solve,
        grid,
        folder,
        inputs=_inputs,
        workers=workers,
        pinned=True,
        layout=f"{{player}}/{{seed}}/{{budget}}/{_RUNS}/{{level}}",
        keep=keep,
        done=lambda cell: done(f"{cell['player'].name} on {cell['level'].name}"),
    )
    return [
        Run(
            level=row["level"].name,
            player=row["player"].name,
            seed=row["seed"],
            budget=row["budget"],
            plan=path(row),
            latency_ps=row["latency_ps"],
            in_time_ps=row["in_time_ps"],
        )
        for row in rows
    ]


def _inputs(level: _Problem, seed: int, player: Player, budget: Budget) -> dict[str, Any]:
    """What must be the same for a result that is kept."""
    return {
        "player": player.name,
        "seed": seed,
        "budget": dataclasses.asdict(budget),
        "program": level.level.features.get("fingerprint"),
        "rules": games.of(player.game).rules_version,
    }


def _solve(
    level: _Problem | _Loaded, seed: int, player: Player, budget: Budget
) -> tuple[bytes, dict[str, Any]]:
    """Returns the plan as JSON, and what the record of the run says beside its settings."""
    program, hardware = level.load()
    # The fine game brings its own limit, of small buffers too.
    options = {} if player.game == "fine" else {"min_buffer_bytes": MIN_BUFFER_BYTES}
    game = Game(program, hardware, seed=seed, game=player.game, **options)
    result = solve(game, player.solver, budget.seconds, seed, evaluations=budget.games)
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
