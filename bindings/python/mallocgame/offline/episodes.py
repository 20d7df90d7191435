"""Games of several players, with what each action at each position would have come to."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mallocgame._core import Game, Observer, Prices, action_returns
from mallocgame._solve import solve
from mallocgame.errors import InvalidInputError
from mallocgame.level_sets import Level
from mallocgame.observation import settings_of

OBSERVATIONS = ("compact", "flat")

# Who can play -> how many games it looks at unless it is told; 0: as many as it needs.
BEHAVIOURS = {"greedy": 0, "rent": 0, "mcts": 1000, "random": 1}


@dataclasses.dataclass(frozen=True)
class Behaviour:
    """Who plays: a solver, the best of whose games is taken.

    `greedy` and `rent` have one game each. `mcts:N` searches for N games, and `random:N` plays N
    games at random; both need a seed.
    """

    solver: str
    games: int  # that it looks at; 0: as many as it needs

    @staticmethod
    def named(text: str) -> "Behaviour":
        """Returns the behaviour NAME or NAME:GAMES. InvalidInputError: there is none."""
        solver, colon, games = text.partition(":")
        usual = BEHAVIOURS.get(solver)
        allowed = ", ".join(name + ":N" * (count > 0) for name, count in BEHAVIOURS.items())
        if usual is None or (colon and not (usual and games.isascii() and games.isdigit())):
            raise InvalidInputError(f"found behaviour '{text}', allowed: {allowed}")
        count = int(games) if colon else usual
        if colon and not 1 <= count < 2**63:
            raise InvalidInputError(f"{text}: found {games} games, allowed: 1 and above")
        return Behaviour(solver, count)

    @property
    def name(self) -> str:
        return f"{self.solver}:{self.games}" if self.games else self.solver

    @property
    def seeded(self) -> bool:
        """Whether it plays another game with another seed."""
        return self.games > 0


@dataclasses.dataclass(frozen=True, eq=False)
class Episode:
    """A game, with the return of every action at each of its positions.

    Rewards add up to the return of the game, 1 - latency / all-main latency. The return of an
    action is that of the game that takes it and goes on as `continuation` plays, so it is what was
    reached and not what can be. A return at a position counts from the start of the game: what the
    decisions before have saved is in it.
    """

    level: str  # the name of the level, or of the program
    fingerprint: str  # of the program
    behaviour: str  # who played: greedy, rent, mcts:N or random:N
    seed: int
    continuation: str  # who plays on behind an action: greedy, or rent at prices that were given
    min_buffer_bytes: int  # of the game; a solver may have asked about smaller buffers than usual
    all_main_ps: int
    latency_ps: int
    observations: NDArray[np.float32]  # [decisions, size], as the environments give them
    final_observation: NDArray[np.float32]  # [size], after the last decision
    masks: NDArray[np.bool_]  # [decisions, actions]: what is legal
    actions: NDArray[np.uint8]  # [decisions]: what was taken
    rewards: NDArray[np.float32]  # [decisions], as the environments give them
    returns: NDArray[np.float32]  # [decisions, actions]; NaN where an action is illegal

    @property
    def decisions(self) -> int:
        """The length of the game."""
        return len(self.actions)

    @property
    def total_return(self) -> float:
        """The return of the game."""
        return 1 - self.latency_ps / self.all_main_ps if self.all_main_ps else 0.0


ARRAYS = ("observations", "masks", "actions", "rewards", "returns")  # a row for each decision
FACTS = tuple(
    field.name
    for field in dataclasses.fields(Episode)
    if field.name not in (*ARRAYS, "final_observation")
)


def play_games(
    on: Level | Game,
    behaviours: Sequence[str] = tuple(BEHAVIOURS),
    seeds: int = 1,
    *,
    observation: str = "compact",
    prices: Prices | None = None,
) -> list[Episode]:
    """Lets each behaviour play with each of the seeds 0, 1 ... and returns an episode of each game.

    A behaviour that has no chance in it plays once. The same arguments give the same episodes.

    on: a level, or a Game. Where instructions wait for small buffers, rent may play a game that
    decides these buffers too; Episode.min_buffer_bytes says so.
    observation: "compact" or "flat", with the settings that the environments have by default.
    prices: at which rent plays on behind each action, and which the observations know; None lets
    greedy play on, and what observations say of prices is 0.

    InvalidInputError: there is no such behaviour, it can't play the game, or the prices are of
    another program.
    """
    game = on.game() if isinstance(on, Level) else on
    name = on.name if isinstance(on, Level) else game.program.name
    runs, settings = runs_of(behaviours, seeds), settings_named(observation)
    return [play_game(name, game, behaviour, seed, settings, prices) for behaviour, seed in runs]


def runs_of(behaviours: Sequence[str], seeds: int) -> list[tuple[Behaviour, int]]:
    """Returns who plays with which seeds."""
    if seeds < 1:
        raise InvalidInputError(f"seeds: found {seeds}, allowed: 1 and above")
    named = dict.fromkeys(Behaviour.named(text) for text in behaviours)
    return [(one, seed) for one in named for seed in range(seeds if one.seeded else 1)]


def settings_named(observation: str) -> dict[str, int]:
    if observation not in OBSERVATIONS:
        raise InvalidInputError(
            f"observation: found {observation!r}, allowed: {', '.join(map(repr, OBSERVATIONS))}"
        )
    return settings_of(observation, {})


def play_game(
    name: str,
    given: Game,
    behaviour: Behaviour,
    seed: int,
    settings: dict[str, int],
    prices: Prices | None,
) -> Episode:
    solved = solve(given, behaviour.solver, seconds=0, seed=seed, evaluations=behaviour.games)
    game, actions = solved.game, solved.actions
    observer, state = Observer(game, settings, prices), game.initial_state()
    observations = np.empty((len(actions) + 1, observer.size), np.float32)
    masks = np.empty((len(actions), game.num_actions), np.bool_)
    returns = np.empty(masks.shape, np.float32)
    rewards = np.empty(len(actions), np.float32)
    for i, action in enumerate(actions.tolist()):
        observations[i] = observer.observe(state)
        masks[i] = state.legal_mask()
        returns[i] = action_returns(state, prices)
        rewards[i] = state.apply(action)
    observations[-1] = observer.observe(state)
    return Episode(
        level=name,
        fingerprint=game.program.fingerprint,
        behaviour=behaviour.name,
        seed=seed,
        continuation="greedy" if prices is None else "rent",
        min_buffer_bytes=game.min_buffer_bytes,
        all_main_ps=game.all_main_ps,
        latency_ps=state.latency_ps,
        observations=observations[:-1],
        final_observation=observations[-1],
        masks=masks,
        actions=actions,
        rewards=rewards,
        returns=returns,
    )
