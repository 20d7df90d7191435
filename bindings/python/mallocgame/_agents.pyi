"""The agents that need Torch, as mallocgame.agents wraps them."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mallocgame._core import Game, Hardware, NamedSolver, Placement, Program, SolveResult, State

class MuZeroTrainer:
    """The training of one agent on several problems; mallocgame.agents.MuZero wraps it."""

    def __init__(
        self,
        problems: Sequence[tuple[str, Program, Hardware | None]],
        settings: Mapping[str, str],
        seed: int,
        threads: int,
        tuned_from: bytes,
    ) -> None:
        """problems: (name, program, hardware or None for the program's own). threads 0: one a core.

        tuned_from: the bytes of save(), with whose networks the training begins; none if empty.

        InvalidInputError: a setting that is none, or a game in which nothing is to be decided.
        """
    @staticmethod
    def load(
        problems: Sequence[tuple[str, Program, Hardware | None]], checkpoint: bytes, threads: int
    ) -> MuZeroTrainer:
        """Goes on with a checkpoint of save(), with the very same stream.

        InvalidInputError: another version, other problems, or damaged bytes.
        """
    def step(self) -> dict:
        """Does one iteration, and returns what it did by name (docs/muzero.md)."""
    def take_demonstrations(self, demonstrations: Sequence[bytes]) -> dict:
        """The first step, of what muzero_demonstrations gave for each problem."""
    def introduction(self) -> bytes:
        """What a MuZeroActor is made of, after the first step."""
    def weights(self) -> bytes:
        """The networks as they are now, for MuZeroActor.play."""
    def assign(self, group: int) -> bytes:
        """What a group is to play next, for MuZeroActor.play. It is out until it is taken."""
    def take(self, group: int, harvest: bytes, most_stale: int | None) -> None:
        """Takes what MuZeroActor.play gave. Games of networks older than that are dropped."""
    def learn(self, updates: int) -> None:
        """Learns from the games that were taken."""
    def end_step(self) -> dict:
        """Ends a step of assign, learn and take; returns what step() does."""
    def save(self) -> bytes:
        """Returns the bytes of a checkpoint."""
    def best(self, problem: int) -> SolveResult:
        """The best plan known of a problem."""
    def best_game(self, problem: int) -> SolveResult:
        """The best game known of a problem: its actions make its plan."""
    def polish(self, problem: int, seconds: float) -> SolveResult:
        """Improves best() by local search over the whole plan, and returns it."""
    @property
    def settings(self) -> dict[str, str]:
        """All settings as text, by name."""
    @property
    def seed(self) -> int:
        """The seed that the training was begun with."""
    @property
    def iterations(self) -> int:
        """Steps done."""
    @property
    def parameters(self) -> int:
        """The number of weights of the networks that play."""

class MuZeroActor:
    """Plays for a MuZeroTrainer in another process; see MuZero.actors."""

    def __init__(
        self, problems: Sequence[tuple[str, Program, Hardware | None]], introduction: bytes
    ) -> None:
        """InvalidInputError: the introduction is damaged, or of other problems."""
    def play(self, weights: bytes, assignment: bytes) -> bytes:
        """Returns a harvest. It depends on both only. InvalidInputError: one is damaged."""

def muzero_demonstrations(
    problem: tuple[str, Program, Hardware | None], settings: Mapping[str, str], seed: int
) -> bytes:
    """The demonstrations of a problem, for MuZeroTrainer.take_demonstrations."""

class MuZeroAgent:
    """A trained agent that plays any program; mallocgame.agents.MuZeroAgent wraps it."""

    def __init__(self, checkpoint: bytes) -> None:
        """checkpoint: the bytes of MuZeroTrainer.save(). InvalidInputError: it is not one."""
    def solver(self, portfolio_share: float) -> NamedSolver:
        """Returns the solver `muzero`.

        portfolio_share: its share of a portfolio's time, on one core.
        """
    def game_to_play(self, game: Game) -> Game:
        """Returns the game that promises most for the program and hardware of a game.

        InvalidInputError: the agent plays another game.
        """
    def baseline(self, game: Game) -> SolveResult:
        """Returns the game over which the agent counts its returns.

        InvalidInputError: the agent plays another game.
        """
    def play(self, game: Game, config: dict[str, str]) -> SolveResult:
        """Plays one game, each decision by a search. See MuZeroAgent.play.

        config: settings of the search; those left out are the agent's. InvalidInputError: the agent
        plays another game, or a setting is none.
        """
    def act(self, state: State) -> tuple[int, NDArray[np.float32], float]:
        """Returns the action to play, the policy float32 [actions], and the expected return.

        GameOverError: nothing is to be decided any more. InvalidInputError: the state is not of the
        game that the agent was trained in.
        """
    @property
    def settings(self) -> dict[str, str]:
        """All settings as text, by name."""
    @property
    def iterations(self) -> int:
        """Steps of training."""
    @property
    def programs(self) -> list[str]:
        """The names of the programs that it was trained on."""

class EgrlTrainer:
    """The training on placement problems; mallocgame.agents.Egrl wraps it."""

    def __init__(
        self, problems: Sequence[Placement], settings: Mapping[str, str], seed: int, threads: int
    ) -> None:
        """problems: with the same number of levels. threads 0: one a core.

        InvalidInputError: a setting that is none.
        """
    @staticmethod
    def load(problems: Sequence[Placement], checkpoint: bytes, threads: int) -> EgrlTrainer:
        """Goes on with a checkpoint of save(), with the very same stream.

        InvalidInputError: another version, other problems, or damaged bytes.
        """
    def step(self, harvest: bytes | None = None) -> dict:
        """Does one generation of one problem, and returns what it did by name (docs/egrl.md).

        harvest: what egrl_harvest() made of its assignment; None: it is made here.
        InvalidInputError: the harvest is damaged, or of another generation.
        """
    def weights(self) -> bytes:
        """Returns the networks of this round, as egrl_harvest() takes them."""
    def assign(self, problem: int) -> bytes:
        """Returns what the generation of a problem in this round is made from, but the networks.

        InvalidInputError: there is no such problem, or it has had its turn.
        """
    def save(self) -> bytes:
        """Returns the bytes of a checkpoint."""
    def best(self, problem: int) -> tuple[NDArray[np.uint8], int, float, NDArray[np.int64]]:
        """Returns the fastest map that fits, as Placement.search gives it.

        problem: its place. IndexError: there is none.
        """
    @property
    def settings(self) -> dict[str, str]:
        """All settings as text, by name."""
    @property
    def seed(self) -> int:
        """The seed that the training was begun with."""
    @property
    def generations(self) -> int:
        """Steps done."""
    @property
    def evaluations(self) -> int:
        """Maps graded since the begin, of all problems."""
    @property
    def parameters(self) -> int:
        """The number of weights of the networks that play."""

def egrl_harvest(problem: Placement, networks: bytes, assignment: bytes, threads: int) -> bytes:
    """Makes and grades the maps of an assigned generation, and returns them for step().

    InvalidInputError: the bytes are damaged, or of another problem.
    """

class EgrlAgent:
    """A trained agent that places any program; mallocgame.agents.EgrlAgent wraps it."""

    def __init__(self, checkpoint: bytes) -> None:
        """checkpoint: the bytes of EgrlTrainer.save(). InvalidInputError: it is not one."""
    def place(
        self, problem: Placement, samples: int, seed: int
    ) -> tuple[NDArray[np.uint8], int, float, NDArray[np.int64]]:
        """Returns the fastest of the most likely maps and `samples` drawn and improved ones.

        It is given as Placement.search gives it. InvalidInputError: another number of levels.
        """
    def solver(self, portfolio_share: float) -> NamedSolver:
        """Returns the solver `egrl`.

        portfolio_share: its share of a portfolio's time, on one core.
        """
    @property
    def name(self) -> str:
        """The names of the programs that it was trained on, with commas between them."""
    @property
    def levels(self) -> int:
        """The number of memory levels of the problems that it can place."""
    @property
    def settings(self) -> dict[str, str]:
        """All settings as text, by name."""
    @property
    def generations(self) -> int:
        """Steps of training."""
    @property
    def evaluations(self) -> int:
        """Maps graded in training."""

def egrl_settings() -> list[tuple[str, str, str, str]]:
    """Returns (name, default, allowed, meaning) of each setting."""

def egrl_solver() -> NamedSolver:
    """Returns the solver `egrl`, which trains on the program's game within the limits."""

def muzero_settings() -> list[tuple[str, str, str, str]]:
    """Returns (name, default, allowed, meaning) of each setting."""

def muzero_count_of_decision(game: Game) -> int:
    """As how many a decision of this game counts where decisions are limited."""

def torch_version() -> str:
    """Returns the version of Torch that the extension was built with."""
