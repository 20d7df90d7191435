"""The games for OpenSpiel.

Importing this module registers pyspiel.load_game("mallocgame", {"program": NAME}). It needs
open_spiel. There are one player, perfect information and no chance; the utility is the return,
1 - latency / all-main latency. The parameters are program (a bundled name or a .mgp path), hardware
("" is the program's own), actions ("full" or "paper"), game ("time" or "order") and candidates (how
many runs the order game shows).
"""

from typing import Any

import pyspiel

from mallocgame import programs
from mallocgame._core import Game, State

# The least utility: stalls can make a play slower than all-main, but not by this much.
_LEAST_UTILITY = -100.0

_TYPE = pyspiel.GameType(
    short_name="mallocgame",
    long_name="mallocGame",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.DETERMINISTIC,
    information=pyspiel.GameType.Information.PERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.GENERAL_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=1,
    min_num_players=1,
    provides_information_state_string=True,
    provides_information_state_tensor=False,
    provides_observation_string=True,
    provides_observation_tensor=False,
    parameter_specification={
        "program": "wavernn_64steps_b8.tpu_v4i",
        "hardware": "",
        "actions": "full",
        "game": "time",
        "candidates": 4,
    },
)


class MallocGame(pyspiel.Game):
    """A program, hardware and options."""

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        settings = {**_TYPE.parameter_specification, **(params or {})}
        name = settings["hardware"]
        self.game = Game(
            programs.load_program(settings["program"]),
            hardware=programs.hardware(name) if name else None,
            actions=settings["actions"],
            game=settings["game"],
            candidates=settings["candidates"],
        )
        self.names = self.game.action_names
        info = pyspiel.GameInfo(
            num_distinct_actions=self.game.num_actions,
            max_chance_outcomes=0,
            num_players=1,
            min_utility=_LEAST_UTILITY,
            max_utility=1.0,
            max_game_length=self.game.max_decisions,
        )
        super().__init__(_TYPE, info, params or {})

    def new_initial_state(self) -> "MallocState":
        return MallocState(self)

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> "PrintedObserver":
        return PrintedObserver()


class PrintedObserver:
    """An observer of OpenSpiel that gives the printed form of a state.

    It has no tensor; MallocGameEnv gives those.
    """

    def __init__(self) -> None:
        self.tensor = None
        self.dict: dict[str, Any] = {}

    def set_from(self, state: "MallocState", player: int) -> None:
        """Does nothing, because there is nothing to fill."""

    def string_from(self, state: "MallocState", player: int) -> str:
        return state.state.to_string()


class MallocState(pyspiel.State):
    """A position; its `state` is mallocgame's own."""

    def __init__(self, game: MallocGame) -> None:
        super().__init__(game)
        self.state: State = game.game.initial_state()
        self._names = game.names

    def current_player(self) -> int:
        return pyspiel.PlayerId.TERMINAL if self.state.is_terminal() else 0

    def _legal_actions(self, player: int) -> list[int]:
        return self.state.legal_actions()

    def _apply_action(self, action: int) -> None:
        self.state.apply(action)

    def _action_to_string(self, player: int, action: int) -> str:
        return self._names[action]

    def is_terminal(self) -> bool:
        return self.state.is_terminal()

    def returns(self) -> list[float]:
        return [
            1 - self.state.latency_ps / self.state.game.all_main_ps
            if self.state.is_terminal()
            else 0.0
        ]

    def information_state_string(self, player: int | None = None) -> str:
        return self.history_str()

    def observation_string(self, player: int | None = None) -> str:
        return str(self)

    def __str__(self) -> str:
        return self.state.to_string()


pyspiel.register_game(_TYPE, MallocGame)
