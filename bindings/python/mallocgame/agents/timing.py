"""How the time of a MuZero training is shared: demonstrations, then learning, then polishing."""

import os
import timeit
from collections.abc import Iterable, Mapping

from mallocgame._core import Game, Hardware, solve_game
from mallocgame._torch import torch_module
from mallocgame.agents.muzero import MuZero, MuZeroAgent, Trained, annealed_games, muzero_settings
from mallocgame.games import GameOptions

POLISH_SHARE = 0.1  # of the time, for annealing the best plans at the end
_DECISIONS = "demonstration_decisions"
_DEMONSTRATION_SHARE = 0.3  # of the time, for annealing's demonstrations
_MEASURING_SHARE = 0.0015  # of the time, at least, to see how fast that plays,
_MOST_MEASURING_SECONDS = 0.25  # but no longer for a program
_MOST_MEASURED_GAMES = 1_000_000


def begin_muzero(
    programs: Trained | Iterable[Trained],
    seconds: float,
    config: Mapping[str, object] | None = None,
    seed: int = 0,
    threads: int = 0,
    hardware: Hardware | None = None,
    tuned_from: MuZeroAgent | str | os.PathLike[str] | None = None,
    game: str | GameOptions | None = None,
    prices: str | None = None,
) -> MuZero:
    """Begins a MuZero training that is to last so long, with a demonstration of annealing to suit.

    A config that says how much is demonstrated stays, and with preset=paper nothing is. Everything
    but `seconds` is as MuZero takes it. POLISH_SHARE of the time is for polish() at the end:

        trainer = begin_muzero(program, seconds)
        trainer.train((1 - POLISH_SHARE) * seconds)
        result = trainer.polish(seconds=POLISH_SHARE * seconds)
    """
    given = [programs] if isinstance(programs, Trained) else list(programs)
    settings = dict(config or {})

    def begin(settings: Mapping[str, object]) -> MuZero:
        return MuZero(given, settings, seed, threads, hardware, game, tuned_from, prices)

    trainer = begin(settings)
    if _DECISIONS in settings or trainer.settings["preset"] == "paper":
        return trainer
    return begin({**settings, _DECISIONS: _demonstration_decisions(trainer, seconds)})


def _demonstration_decisions(trainer: MuZero, seconds: float) -> float:
    """The decisions that annealing plays in its share of the time, of each program.

    It is measured, because in some programs a decision takes ten times as long as in others.
    """
    measuring = min(_MEASURING_SHARE * seconds / len(trainer.names), _MOST_MEASURING_SECONDS)
    seconds_of_a_decision = 0.0  # of one in each program, as it counts
    for game in annealed_games(trainer):
        counted = torch_module().muzero_count_of_decision(game)
        decisions = max(1, len(solve_game(game, "greedy").actions))
        seconds_of_a_decision += _seconds_of_a_game(game, measuring) / decisions / counted
    return min(_DEMONSTRATION_SHARE * seconds / seconds_of_a_decision, _most_decisions())


def _most_decisions() -> float:
    """Returns what the setting allows."""
    (allowed,) = (one.allowed for one in muzero_settings() if one.name == _DECISIONS)
    return float(allowed.rpartition(" ")[2])


def _seconds_of_a_game(game: Game, measuring: float) -> float:
    """Of annealing, without what it does before it begins.

    What that takes depends on the number of games, of which it may make many starts. So it is what
    more games take in a long annealing. Each length is played twice, because a machine that does
    something else for a moment may take ten times as long for one of them.
    """

    def seconds_of(games: int) -> float:
        def anneal() -> None:
            solve_game(game, "anneal", evaluations=games)

        return min(timeit.repeat(anneal, repeat=2, number=1))

    games, before, long = 64, seconds_of(64), 0
    while True:
        seconds, more = seconds_of(4 * games), 3 * games
        # Twice, because the first time it may be the starts that take so long.
        long = long + 1 if seconds - before >= measuring else 0
        if long == 2 or more >= _MOST_MEASURED_GAMES:
            return max((seconds - before) / more, 1e-12)
        games, before = 4 * games, seconds
