"""The MuZero agent from Python; users import it from mallocgame.agents."""

import os
import time
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from mallocgame._core import Game, Hardware, NamedSolver, Program, SolveResult, State, read_file
from mallocgame.agents.torch_module import Setting, TorchTrainer, texts, torch_module
from mallocgame.programs import load_program, named


def muzero_settings() -> list[Setting]:
    """All settings that `config` may have."""
    return [Setting(*setting) for setting in torch_module().muzero_settings()]


class MuZero(TorchTrainer):
    """Training of one agent on one or several programs.

    programs: a Program, the name of a bundled one or path of a .mgp file, or several of them.
    config: settings by name, see muzero_settings(); those left out keep their default. seed,
    threads: the stream of steps depends on programs, config and seed only; threads 0 is one a core.

    InvalidInputError: a setting that isn't one, or a game in which nothing is to be decided.
    """

    def __init__(
        self,
        programs: Program | str | Iterable[Program | str],
        config: Mapping[str, object] | None = None,
        seed: int = 0,
        threads: int = 0,
        hardware: Hardware | None = None,
    ) -> None:
        self._set_programs(programs)
        self._trainer = torch_module().MuZeroTrainer(
            self._problems(hardware), texts(config or {}), seed, threads
        )

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        programs: Program | str | Iterable[Program | str] | None = None,
        threads: int = 0,
        hardware: Hardware | None = None,
    ) -> "MuZero":
        """Go on with what save() wrote, the very same stream.

        programs: those it was begun with; None where they are known by name. InvalidInputError:
        another version, other programs or hardware, or damaged.
        """
        module = torch_module()
        checkpoint = read_file(os.fsencode(path))
        trainer = cls.__new__(cls)
        trainer._set_programs(_agent(checkpoint, path).programs if programs is None else programs)
        problems = trainer._problems(hardware)
        trainer._trainer = named(
            os.fspath(path), lambda: module.MuZeroTrainer.load(problems, checkpoint, threads)
        )
        return trainer

    def step(self) -> dict:
        """One iteration of self-play and learning; the first one collects demonstrations.

        The dict says what it did: best_ps and mean_return by program, games, evaluations, losses,
        and so on (docs/muzero.md). Ctrl-C ends it and raises KeyboardInterrupt; then only results
        can be asked for.
        """
        return self._trainer.step()

    def train(self, seconds: float, on_step: Callable[[dict], object] | None = None) -> None:
        """Steps until `seconds` have passed; at least one."""
        end = time.monotonic() + seconds
        while True:
            progress = self.step()
            if on_step is not None:
                on_step(progress)
            if time.monotonic() >= end:
                return

    def best(self, program: int = 0) -> SolveResult:
        """The best plan known: of self-play, or of a demonstrator if that is better."""
        return self._trainer.best(program)

    def best_game(self, program: int = 0) -> SolveResult:
        """The best game known: its actions make its plan. A demonstrator's plan may be better
        and no game.
        """
        return self._trainer.best_game(program)

    def polish(self, program: int = 0, seconds: float = 1.0) -> SolveResult:
        """What local search over the whole plan makes of best(), which it then is."""
        return self._trainer.polish(program, seconds)

    def agent(self) -> "MuZeroAgent":
        """The agent as it is now."""
        return MuZeroAgent(self._trainer.save())

    @property
    def programs(self) -> list[Program]:
        return list(self._programs)

    @property
    def names(self) -> list[str]:
        """Of the programs, as they were given."""
        return list(self._names)

    @property
    def iterations(self) -> int:
        """Steps done."""
        return self._trainer.iterations

    def _set_programs(self, programs: Program | str | Iterable[Program | str]) -> None:
        given = [programs] if isinstance(programs, (Program, str)) else list(programs)
        self._programs = [
            load_program(program) if isinstance(program, str) else program for program in given
        ]
        self._names = [program if isinstance(program, str) else program.name for program in given]

    def _problems(self, hardware: Hardware | None) -> list[tuple[str, Program, Hardware | None]]:
        return [
            (name, program, hardware)
            for name, program in zip(self._names, self._programs, strict=True)
        ]


class MuZeroAgent:
    """A trained agent: plays any program, also one that it has not seen."""

    def __init__(self, checkpoint: bytes) -> None:
        self._agent = torch_module().MuZeroAgent(checkpoint)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "MuZeroAgent":
        """From what MuZero.save or `mallocgame train muzero` wrote."""
        return _agent(read_file(os.fsencode(path)), path)

    def act(self, state: State) -> tuple[int, np.ndarray, float]:
        """Search from a position: the action to play, the policy (one number an action), and the
        expected return of the whole game. GameOverError where nothing is to be decided any more.
        """
        return self._agent.act(state)

    def play(self, program: Program | Game) -> SolveResult:
        """One game, each decision by a search without noise: what the networks are worth by
        themselves.
        """
        return self._agent.play(program if isinstance(program, Game) else Game(program))

    def solver(self, portfolio_share: float = 0.5) -> NamedSolver:
        """Returns the solver `muzero` for mallocgame.solve(extra_solvers=[...]).

        portfolio_share: its share of a portfolio's time, on one core.
        """
        return self._agent.solver(portfolio_share)

    @property
    def settings(self) -> dict[str, str]:
        return self._agent.settings

    @property
    def iterations(self) -> int:
        """Of training."""
        return self._agent.iterations

    @property
    def programs(self) -> list[str]:
        """That it was trained on."""
        return self._agent.programs


def _agent(checkpoint: bytes, path: str | os.PathLike[str]) -> MuZeroAgent:
    return named(os.fspath(path), lambda: MuZeroAgent(checkpoint))
