"""The game that pyspiel has is the one of C++: same_game_test.py SPIEL_TEST. Each game that
`spiel_test --play` prints is played again in Python, number by number."""

import json
import os
import pathlib
import subprocess
import sys

import pyspiel

import mallocgame as mg
import mallocgame.envs.openspiel

PROGRAM = "wavernn_64steps_b8.tpu_v4i"
GAMES = [
    f"mallocgame(program={PROGRAM})",
    f"mallocgame(actions=paper,program={PROGRAM})",
    "mallocgame(game=priority,candidates=8,observation=compact,hardware=tpu_v5e)",
    f"mallocgame(players=2,observation=compact,program={PROGRAM})",
    f"mallocgame(game=schedule,observation=compact,program={PROGRAM})",
]
folder = str(pathlib.Path(mallocgame.envs.openspiel.__file__).parents[1] / "programs")
for text in GAMES:
    printed = subprocess.run(
        [sys.argv[1], "--play", text],
        env=os.environ | {"MALLOCGAME_PROGRAMS": folder},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    theirs = json.loads(printed)
    game = pyspiel.load_game(text)
    state = game.new_initial_state()
    assert str(game) == str(pyspiel.load_game(theirs["game"]))  # Python's has all parameters.
    assert game.max_game_length() == theirs["max_game_length"]
    for step in theirs["steps"]:
        assert state.legal_actions() == step["legal"]
        assert state.action_to_string(step["action"]) == step["name"]
        assert list(state.observation_tensor()) == step["observation"]
        assert str(state) == step["text"]
        state.apply_action(step["action"])
    assert state.is_terminal() and state.returns() == theirs["returns"]
    log = mg.files.GameLog.from_bytes(bytes.fromhex(theirs["log"]))
    assert mg.replay(log, state.state.game.program).same
    assert list(log.actions) == state.history()
    print(f"{text}: {len(state.history())} decisions, return {state.returns()[0]:.6f}")
