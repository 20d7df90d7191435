"""Steps a CPU second of the C interface through ctypes, for embedded.py: c_interface.py LIBRARY
PROGRAM.mgp STEPS."""

import ctypes
import sys

import numpy as np
from rates import best

COUNT = 64


def in_c(library: str, program: str, steps: int) -> float:
    c = ctypes.CDLL(library)
    c.mg_last_error.restype = ctypes.c_char_p

    def call(function, *arguments) -> None:
        if function(*arguments):
            raise RuntimeError(c.mg_last_error().decode())

    made = [ctypes.c_uint64() for _ in range(3)]
    call(c.mg_program_load, program.encode(), ctypes.byref(made[0]))
    nothing = (None, None, ctypes.c_size_t(0))
    call(c.mg_game_create, made[0], b"time", *nothing, ctypes.byref(made[1]))
    # autoreset, fixed, threads and the compact observation
    options = (ctypes.c_int32 * 8)(0, 0, 1, 0, 0, 0, 1, 0)
    one, count = ctypes.c_size_t(1), ctypes.c_int32(COUNT)
    call(c.mg_envs_create, ctypes.byref(made[1]), one, count, options, ctypes.byref(made[2]))
    info = (ctypes.c_int32 * 4)()
    call(c.mg_envs_info_of, made[2], info)
    shapes = [(COUNT, info[2]), (COUNT, info[1]), (COUNT,), (COUNT,), (COUNT,)]
    types = (np.float32, np.int8, np.float64, np.uint8, np.int64)
    arrays = [np.zeros(shape, kind) for shape, kind in zip(shapes, types, strict=True)]
    # mg_buffers: two of its pointers are for another way of resetting.
    out = (ctypes.c_void_p * 7)(*(array.ctypes.data for array in arrays))
    masks, actions = arrays[1], np.zeros(COUNT, np.int64)

    def run() -> None:
        call(c.mg_envs_reset, made[2], None, None, ctypes.byref(out))
        for _ in range(steps // COUNT):
            actions[:] = _TABLE[np.packbits(masks, axis=1, bitorder="little")[:, 0]]
            call(c.mg_envs_step, made[2], ctypes.c_void_p(actions.ctypes.data), ctypes.byref(out))

    return best(run, steps)


_TABLE = np.array([max(bits.bit_length() - 1, 0) for bits in range(256)], np.int64)

if __name__ == "__main__":
    print(in_c(sys.argv[1], sys.argv[2], int(sys.argv[3])))
