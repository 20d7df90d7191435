"""The games for OpenSpiel.

Importing this module registers pyspiel.load_game("mallocgame", {"program": NAME}). It needs
open_spiel. There are one player, perfect information and no chance; the utility is the return,
1 - latency / all-main latency. The parameters are program (a bundled name, a level's or a .mgp
path), hardware ("" is the program's own), actions ("full" or "paper"), game ("time", "priority" or
"schedule"), candidates (how many segments the priority game shows), observation ("flat" or
"compact") and players (1, or 2 for algorithms of zero-sum games, as AlphaZero is: the second never
moves, and its utility is the first one's negative). bindings/open_spiel has the same game in C++.
In the text of a game, as str(game) has it, names are percent-encoded: "," is %2C and "=" %3D.

The observation tensor has the numbers of MallocGameEnv's observation, and rl_environment gives them
to OpenSpiel's own agents. There is no tensor of the information state, as in OpenSpiel's own games
of perfect information: it would have to tell the whole history. undo_action is refused, because
pyspiel keeps the history of a state where a game in Python can't take it back; clone() is quick.
"""

import os
import re
import urllib.parse
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python.observation import IIGObserverForPublicInfoGame

from mallocgame import _arguments
from mallocgame._core import Game, Observer, State
from mallocgame.errors import InvalidInputError, MallocGameError
from mallocgame.observation import layout, settings_of
from mallocgame.playables import played

# The least utility: stalls can make a play slower than all-main, but not by this much.
_LEAST_UTILITY = -100.0

_PARAMETERS: dict[str, Any] = {
    "program": "wavernn_64steps_b8.tpu_v4i",
    "hardware": "",
    "actions": "full",
    "game": "time",
    "candidates": 4,
    "observation": "flat",
    "players": 1,
}


def _type(players: int) -> pyspiel.GameType:
    utility = pyspiel.GameType.Utility
    return pyspiel.GameType(
        short_name="mallocgame",
        long_name="mallocGame",
        dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
        chance_mode=pyspiel.GameType.ChanceMode.DETERMINISTIC,
        information=pyspiel.GameType.Information.PERFECT_INFORMATION,
        utility=utility.ZERO_SUM if players == 2 else utility.GENERAL_SUM,
        reward_model=pyspiel.GameType.RewardModel.TERMINAL,
        max_num_players=2,
        min_num_players=1,
        provides_information_state_string=True,
        provides_information_state_tensor=False,
        provides_observation_string=True,
        provides_observation_tensor=True,
        parameter_specification=_PARAMETERS,
    )


_TYPE = _type(1)


def _quoted(name: str) -> str:
    """Returns a name that OpenSpiel's text of a game can hold, which has no quotes of its own."""
    quoted = re.sub(r"[%,=()]", lambda found: f"%{ord(found[0]):02X}", name)
    is_word = quoted.lower() in ("true", "false")
    if is_word or re.fullmatch(r"[-+.\d][-+.\deE]*", quoted):  # It would be no text.
        quoted = f"%{ord(quoted[0]):02X}{quoted[1:]}"
    return quoted


def _unquoted(name: str) -> str:
    """Returns what _quoted() was given; a file may have a name that only looks so."""
    return name if os.path.exists(name) else urllib.parse.unquote(name)


class MallocGame(pyspiel.Game):
    """A program, hardware and options."""

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        given: dict[str, Any] = params or {}
        settings: dict[str, Any] = {**_PARAMETERS, **given}
        for key in ("program", "hardware"):
            if isinstance(settings[key], str):
                settings[key] = _unquoted(settings[key])
        name = settings["hardware"]
        # pyspiel gives the usual value of each parameter, also of those that the game hasn't.
        options = {
            one: settings[one]
            for one in ("actions", "game", "candidates")
            if settings[one] != _PARAMETERS[one]
        }
        (one,) = played(settings["program"], name or None, **options)
        self.game = one.game
        if not self.game.max_decisions:
            raise InvalidInputError(
                f"program: '{one.name}' has nothing to decide; allowed: one access or more"
            )
        self.names = self.game.action_names
        kind = _arguments.one_of("observation", settings["observation"], ("flat", "compact"))
        self.observation = settings_of(kind, {})
        self._observer = Observer(self.game, self.observation)
        players = _arguments.integer("players", settings["players"], 31)
        if players not in (1, 2):
            raise InvalidInputError(f"players: found {players}, allowed: 1, 2")
        info = pyspiel.GameInfo(
            num_distinct_actions=self.game.num_actions,
            max_chance_outcomes=0,
            num_players=players,
            min_utility=_LEAST_UTILITY,
            max_utility=1.0 if players == 1 else -_LEAST_UTILITY,
            **({} if players == 1 else {"utility_sum": 0.0}),
            max_game_length=self.game.max_decisions,
        )
        quoted: dict[str, Any] = {
            key: _quoted(settings[key]) for key in ("program", "hardware") if key in given
        }
        super().__init__(_type(players), info, {**given, **quoted})

    def __deepcopy__(self, memo: dict[int, Any]) -> "MallocGame":
        return self  # It never changes.

    def __reduce__(self) -> tuple[Any, ...]:
        # pyspiel's own way makes a game whose __init__ was not called.
        return pyspiel.load_game, (_TYPE.short_name, self.get_parameters())

    def new_initial_state(self) -> "MallocState":
        return MallocState(self)

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> Any:
        if params:
            raise InvalidInputError(f"observer: found the parameters {params}, allowed: none")
        if iig_obs_type is None or (iig_obs_type.public_info and not iig_obs_type.perfect_recall):
            return TensorObserver(self, self._observer)
        return IIGObserverForPublicInfoGame(iig_obs_type, params)


class TensorObserver:
    """An observer of OpenSpiel.

    `tensor` has the numbers of an observation, and `dict` its parts by name: the same memory.
    """

    def __init__(self, game: MallocGame, observer: Observer) -> None:
        self._game = game
        self._observer = observer
        self.tensor = np.zeros(observer.size, np.float32)
        self.dict = {
            name: self.tensor[offset : offset + int(np.prod(shape))].reshape(shape)
            for name, offset, shape in layout(game.observation, game.game.options)
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorObserver, (self._game, self._observer), self.tensor

    def __setstate__(self, tensor: np.ndarray) -> None:
        self.tensor[:] = tensor  # which the parts share

    def set_from(self, state: "MallocState", player: int) -> None:
        self.tensor[:] = self._observer.observe(state.state)

    def string_from(self, state: "MallocState", player: int) -> str:
        return state.state.to_string()


class _Position:
    """Where a MallocState is. Pickled it is its actions, to be played in the game that it gets."""

    def __init__(self, actions: bytes, state: State | None = None) -> None:
        self._actions = actions
        self._state = state

    def of(self, game: Game) -> State:
        if self._state is None:
            self._state = game.initial_state()
            for action in self._actions:
                self._state.apply(action)
        return self._state

    def __reduce__(self) -> tuple[Any, ...]:
        state = self._state
        return _Position, (self._actions if state is None else state.actions.tobytes(),)

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Position":
        return _Position(self._actions, self._state and self._state.clone())


class MallocState(pyspiel.State):
    """A position; its `state` is mallocgame's own."""

    def __init__(self, game: MallocGame) -> None:
        super().__init__(game)
        self._position = _Position(b"", game.game.initial_state())

    @property
    def state(self) -> State:
        """The State of mallocgame."""
        return self._position.of(self.get_game().game)

    def current_player(self) -> int:
        return pyspiel.PlayerId.TERMINAL if self.state.is_terminal() else 0

    def _legal_actions(self, player: int) -> list[int]:
        return self.state.legal_actions() if player == 0 else []

    def apply_action(self, action: int) -> None:
        super().apply_action(_arguments.action(action))

    def undo_action(self, player: int, action: int) -> None:
        raise MallocGameError(
            "undo_action: pyspiel lets no game in Python take back its history; "
            "clone() the state before, or undo() mallocgame's own State"
        )

    def _apply_action(self, action: int) -> None:
        self.state.apply(action)

    def _action_to_string(self, player: int, action: int) -> str:
        name: str = self.get_game().names[action]
        return name

    def is_terminal(self) -> bool:
        return self.state.is_terminal()

    def returns(self) -> list[float]:
        all_main_ps = self.state.game.all_main_ps
        first = 0.0
        if self.state.is_terminal() and all_main_ps:  # A program may take no time at all.
            first = 1 - self.state.latency_ps / all_main_ps
        return [first, -first][: self.num_players()]

    def information_state_string(self, player: int | None = None) -> str:
        return self.history_str()

    def observation_string(self, player: int | None = None) -> str:
        return str(self)

    def __str__(self) -> str:
        return self.state.to_string()


pyspiel.register_game(_TYPE, MallocGame)
