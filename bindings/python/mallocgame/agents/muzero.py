"""The MuZero agent. Users import it from mallocgame.agents."""

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from mallocgame import games
from mallocgame._arguments import one_of
from mallocgame._core import Game, Hardware, Program, SolveResult, State, read_file
from mallocgame._torch import torch_module
from mallocgame.agents.actors import Actors, PlayGames, Problem, actors_of
from mallocgame.agents.trainer import Setting, TorchAgent, TorchTrainer, texts
from mallocgame.errors import InvalidInputError
from mallocgame.games import GameOptions
from mallocgame.level_sets import Level, find_level
from mallocgame.programs import load_program, named, program_names

PRICES = BOTH, COMPILER = "both", "compiler"  # by which plans are compared

Trained = Program | str | Level | Game  # what an agent can be trained on


def muzero_settings() -> list[Setting]:
    """Returns all settings that `config` may have."""
    return [Setting(*setting) for setting in torch_module().muzero_settings()]


def settings_of(game: str | GameOptions | None) -> tuple[dict[str, str], GameOptions | None]:
    """Returns the settings that a game stands for, and the game if it has other options too."""
    if game is None:
        return {}, None
    if isinstance(game, str) and game not in games.NAMES:
        return {"game": game}, None  # which the settings refuse
    chosen = games.of(game)
    known = {setting.name for setting in muzero_settings()}
    usual, options = games.of(chosen.name).options(), chosen.options()
    settings = {}
    if game != chosen.name:  # with its usual options
        settings = texts({name: one for name, one in options.items() if name in known})
    whole = all(name in known or one == usual.get(name) for name, one in options.items())
    return {"game": chosen.name} | settings, None if whole else chosen


class MuZero(TorchTrainer):
    """The training of one agent on one or several programs.

    programs: a Program, the name of a bundled one or the path of a .mgp file, or a Level or the
    name of a bundled one, or a Game, or several of them. A Game is played as it is, but for its
    number of candidates; of a program it is the priority game whose weights promise most.
    config: settings by name, see muzero_settings(); those left out keep their default.
    game: the game that it plays, as Game takes it: the same as the settings of its name and
    options. If it has options that are no settings, as "fine", a program is played in that game.
    tuned_from: an agent, or the path of its checkpoint, with whose networks the training begins;
    settings that are left out are the agent's.
    seed, threads: the stream of steps depends on programs, config and seed only; threads 0 is one
    for each core.
    hardware: on which the programs run instead of their own. Levels and Games have their own.
    prices: by which plans are compared: "both", the compiler's and calibrated ones, or "compiler".
    None is both, but for programs that can't have calibrated ones and in the schedule game. Games
    count the compiler's.

    InvalidInputError: a setting is none, the game is given twice, a level or a Game is to run on
    another hardware, a Game is of another kind or is to be played in another game, nothing is to be
    decided in one of the games, or the settings make other networks than the agent has.
    """

    def __init__(
        self,
        programs: Trained | Iterable[Trained],
        config: Mapping[str, object] | None = None,
        seed: int = 0,
        threads: int = 0,
        hardware: Hardware | None = None,
        game: str | GameOptions | None = None,
        tuned_from: "MuZeroAgent | str | os.PathLike[str] | None" = None,
        prices: str | None = None,
    ) -> None:
        settings = texts(config or {})
        if isinstance(tuned_from, (str, os.PathLike)):
            tuned_from = MuZeroAgent.load(tuned_from)
        of_game, own = settings_of(game)
        for name, one in of_game.items():
            if settings.setdefault(name, one) != one:
                raise InvalidInputError(
                    f"muzero: found {name}='{one}' and the setting {name}='{settings[name]}'"
                )
        if tuned_from is not None:
            settings = tuned_from.settings | settings
        self._problems = _problems_of(programs, hardware, prices, settings.get("game"), own)
        self._actors: Actors | None = None
        self._trainer = torch_module().MuZeroTrainer(
            self._problems,
            settings,
            seed,
            threads,
            b"" if tuned_from is None else tuned_from.checkpoint,
        )

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        programs: Trained | Iterable[Trained] | None = None,
        threads: int = 0,
        hardware: Hardware | None = None,
        prices: str | None = None,
    ) -> "MuZero":
        """Goes on with what save() wrote, with the very same stream.

        programs: those that it was begun with; None where they are known by name. prices: those by
        which plans are compared from here on, as of MuZero. Before the first
        step a game with options that are no settings is given by Games.
        InvalidInputError: the file is damaged or of another version, or the programs or hardware
        are others.
        """
        module = torch_module()
        trainer, checkpoint = cls.__new__(cls), read_file(path)
        agent = MuZeroAgent.load(path)
        programs = agent.programs if programs is None else programs
        problems = _problems_of(programs, hardware, prices, agent.settings["game"])
        trainer._problems = problems
        trainer._actors = None
        trainer._trainer = named(
            os.fspath(path), lambda: module.MuZeroTrainer.load(problems, checkpoint, threads)
        )
        return trainer

    def step(self) -> dict[str, Any]:
        """Does one iteration of self-play and learning; the first collects demonstrations.

        Returns what it did: best_ps and mean_return by program, games, evaluations, losses, and so
        on (docs/muzero.md). Ctrl-C ends it and raises KeyboardInterrupt; then only results can be
        asked for.
        """
        player = self._trainer if self._actors is None else self._actors
        progress: dict[str, Any] = player.step()
        return progress

    def train(
        self, seconds: float, on_step: Callable[[dict[str, Any]], object] | None = None
    ) -> None:
        """Does steps until `seconds` have passed, and at least one."""
        end = time.monotonic() + seconds
        while True:
            progress = self.step()
            if on_step is not None:
                on_step(progress)
            if time.monotonic() >= end:
                return

    @contextlib.contextmanager
    def actors(self, workers: int | str, most_stale: int | None = None) -> Iterator[None]:
        """Has others play the games of all steps within the block.

            with trainer.actors("auto"):
                trainer.train(seconds=600)

        A step raises FailedJobsError for a group of games that failed three times.
        workers: a number of processes of this machine, or the address of a Ray cluster (docs/
        ray.md). At most as many work as there are groups of games, the setting `groups`.
        most_stale: None: the stream stays the same. A number: no actor waits for another, and games
        are dropped that networks searched which are older by more updates.

        InvalidInputError: a number is too small, or no cluster answers there.
        """
        problems = self._problems
        work = PlayGames(problems, self._trainer.settings, self._trainer.seed)
        with actors_of("muzero", work, workers) as crew:
            self._actors = Actors(self._trainer, problems, crew, most_stale)
            try:
                yield
            finally:
                self._actors = None

    def best(self, program: int = 0) -> SolveResult:
        """Returns the best plan known: of self-play, or of a demonstrator if that is better."""
        result: SolveResult = self._trainer.best(program)
        return result

    def best_game(self, program: int = 0) -> SolveResult:
        """Returns the best game known: its actions make its plan.

        A demonstrator's plan may be better without being a game.
        """
        result: SolveResult = self._trainer.best_game(program)
        return result

    def polish(self, program: int = 0, seconds: float = 1.0) -> SolveResult:
        """Improves best() by annealing its residences, and returns it."""
        result: SolveResult = self._trainer.polish(program, seconds)
        return result

    def agent(self) -> "MuZeroAgent":
        """Returns the agent as it is now."""
        return MuZeroAgent(self._trainer.save())

    @property
    def programs(self) -> list[Program]:
        """The programs that it is trained on."""
        played = (problem.played for problem in self._problems)
        return [one.program if isinstance(one, Game) else one for one in played]

    @property
    def hardware(self) -> list[Hardware]:
        """What each of the programs runs on."""
        return [problem.hardware or problem.played.hardware for problem in self._problems]

    @property
    def names(self) -> list[str]:
        """The names of the programs, as they were given; of a level its own."""
        return [problem.name for problem in self._problems]

    @property
    def iterations(self) -> int:
        """Steps done."""
        return int(self._trainer.iterations)


def _problems_of(
    programs: Trained | Iterable[Trained],
    hardware: Hardware | None,
    prices: str | None,
    kind: str | None,
    own: GameOptions | None = None,
) -> list[Problem]:
    if prices is not None:
        one_of("prices", prices, PRICES)
    elif kind == "schedule":
        prices = COMPILER
    given = [programs] if isinstance(programs, Trained) else programs
    return [Problem(*_named(one, hardware, own), prices) for one in given]


def _named(
    one: Trained, hardware: Hardware | None, own: GameOptions | None
) -> tuple[str, Program | Game, Hardware | None]:
    if isinstance(one, str) and one not in program_names():
        one = find_level(one) or one
    if isinstance(one, (Level, Game)):
        kind, name = ("level", one.name) if isinstance(one, Level) else ("game", one.program.name)
        if hardware is not None:
            raise InvalidInputError(
                f"{kind} '{name}': found the hardware {hardware.name}, allowed: none, "
                f"because a {kind} has its own"
            )
        if isinstance(one, Level):
            if own is not None:
                return name, one.game(own), None
            return name, one.load_program(), one.hardware()
        if own is not None:
            raise InvalidInputError(
                f"game '{name}': found the options {own}, allowed: none, because a Game has its own"
            )
        return name, one, None
    name, program = (one.name, one) if isinstance(one, Program) else (one, load_program(one))
    if own is not None:
        return name, Game(program, hardware, own), None
    return name, program, hardware


def annealed_games(trainer: MuZero) -> list[Game]:
    """Returns the priority games in which annealing demonstrates, one for each program."""
    return [
        one
        if isinstance(one, Game) and one.kind == "priority"
        else Game(program, hardware, "priority")
        for one, program, hardware in zip(
            (problem.played for problem in trainer._problems),
            trainer.programs,
            trainer.hardware,
            strict=True,
        )
    ]


class Decision(NamedTuple):
    """What MuZeroAgent.act says of a position."""

    action: int  # to play
    policy: np.ndarray  # float32 [actions]
    value: float  # the expected return of the whole game


class MuZeroAgent(TorchAgent):
    """A trained agent. It plays any program, also one that it has not seen."""

    _kind = "muzero"

    def act(self, state: State) -> Decision:
        """Searches from a position of game(), or of another game with as many actions.

        GameOverError: nothing is to be decided any more. InvalidInputError: it is another game,
        or one with another number of candidates.
        """
        return Decision(*self._agent.act(state))

    def baseline(self, program: Program | Game) -> SolveResult:
        """Returns the best game of greedy, rent, styles and xla-heuristic.

        It is as far theirs as the game lets them be played, which is game() of a program. The agent
        sees what it does, counts returns over it, and follows it in rollouts at first.
        """
        result: SolveResult = self._agent.baseline(self._given(program))
        return result

    def play(
        self,
        program: Program | Game,
        simulations: int | None = None,
        config: Mapping[str, object] | None = None,
    ) -> SolveResult:
        """Plays one game, each decision by a search without noise.

        program: a Program is played in game(). A Game is played as it is, but a priority or
        schedule game with as many candidates as the agent was trained with.
        simulations: of a search, 1 to 4096, instead of the setting; with 1 the policy decides
        alone.
        config: other settings of the search by name: prior and rollout_share.

        With rollouts it plays on as the fastest game that one has ended in so far; with
        rollout_share=0 it shows what the networks are worth by themselves. With prior=uniform noise
        draws the actions that Gumbel search tries. InvalidInputError: the Game is not of the kind
        that the agent was trained in, or a setting is none.
        """
        search = texts(config or {})
        if simulations is not None:
            search["simulations"] = str(simulations)
        result: SolveResult = self._agent.play(self._given(program), search)
        return result

    def game(self, program: Program | Game) -> Game:
        """Returns the game that promises most for a program, or for the hardware of a Game.

        It is the one of the priority games in which greedy or styles is fastest: they have other
        weights of importance, small buffers, or not the largest ones. Of the other games there is
        one. InvalidInputError: the Game is not of the kind that the agent was trained in.
        """
        if not isinstance(program, Game):
            settings = self.settings
            options: dict[str, Any] = {"min_buffer_bytes": int(settings["min_buffer_bytes"])}
            if settings["preset"] == "paper":
                options["paper_actions"] = True
                options["drop_backup"] = settings["drop_backup"] == "1"
                options["illegal_penalty"] = float(settings["illegal_penalty"])
            program = Game(program, game=settings["game"], **options)
        game: Game = self._agent.game_to_play(program)
        return game

    def _given(self, program: Program | Game) -> Game:
        return program if isinstance(program, Game) else self.game(program)

    @property
    def iterations(self) -> int:
        """Steps of training."""
        return int(self._agent.iterations)

    @property
    def programs(self) -> list[str]:
        """The names of the programs that it was trained on."""
        return list(self._agent.programs)
