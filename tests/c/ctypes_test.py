"""The C interface from another language, with nothing but its shared library: ctypes_test.py
LIBRARY PROGRAM LOG. Plays greedily, and writes the game as a log."""

import ctypes
import json
import pathlib
import sys

c = ctypes.CDLL(sys.argv[1])
c.mg_last_error.restype = ctypes.c_char_p
Handle = ctypes.c_uint64


class Info(ctypes.Structure):
    """mg_position_info"""

    _fields_ = (
        ("latency_ps", ctypes.c_int64),
        ("num_decisions", ctypes.c_int32),
        ("terminal", ctypes.c_int32),
    )


def call(function: str, *arguments: object) -> None:
    """Calls a function of the interface. RuntimeError: it refuses."""
    if getattr(c, function)(*arguments):
        raise RuntimeError(c.mg_last_error().decode())


def made(function: str, *arguments: object) -> Handle:
    handle = Handle()
    call(function, *arguments, ctypes.byref(handle))
    return handle


def given(function: str, *arguments: object) -> bytes:
    size = ctypes.c_size_t()
    call(function, *arguments, None, ctypes.c_size_t(0), ctypes.byref(size))
    out = ctypes.create_string_buffer(size.value + 1)
    call(function, *arguments, out, ctypes.c_size_t(len(out)), ctypes.byref(size))
    return out.raw[: size.value]


program = made("mg_program_load", sys.argv[2].encode())
game = made("mg_game_create", program, b"time", None, None, ctypes.c_size_t(0))
position = made("mg_position_create", game)
info, saved = Info(), ctypes.c_int64()
mask = (ctypes.c_int8 * 4)()
while True:
    call("mg_position_info_of", position, ctypes.byref(info))
    if info.terminal:
        break
    call("mg_position_legal", position, mask, ctypes.c_size_t(4))
    worth = {}
    for action in (a for a in range(4) if mask[a]):
        call("mg_position_apply", position, action, ctypes.byref(saved))
        call("mg_position_undo", position)
        worth[action] = saved.value
    call("mg_position_apply", position, max(worth, key=worth.__getitem__), None)
plan = json.loads(given("mg_position_plan", position))
assert plan["format"] == "mallocgame plan" and plan["residences"]
log = given("mg_position_log", position, b"greedy by ctypes", ctypes.c_uint64(0))
call("mg_log_replay", program, log, ctypes.c_size_t(len(log)), None)
try:
    call("mg_position_apply", position, 0, None)
except RuntimeError as error:
    assert "over" in str(error), error
else:
    raise AssertionError("a step after the end was taken")
for handle in (position, game, program):
    call("mg_free", handle)
pathlib.Path(sys.argv[3]).write_bytes(log)
print(f"greedy {info.latency_ps} ps after {info.num_decisions} decisions")
