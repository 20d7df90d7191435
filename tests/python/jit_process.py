"""What a process begins with that takes executables on a PJRT plugin for CPUs, in place of libtpu.

xla_delivery_test.py and .ci/check_tpu_hosts run it with more behind it.
"""

# ruff: noqa: F401
import dataclasses
import json
import os
import pathlib
import sys
import threading
import time
import warnings

import jax
import jax.numpy as jnp
import lammps_jax_pjrt_cpu
import numpy as np
from jax._src import xla_bridge

import mallocgame.xla as mgx
from mallocgame.xla import hook, jitting
from mallocgame.xla.compiler import installed_versions
from mallocgame.xla.modules import wire_fields
from mallocgame.xla.tuned_folders import Key, TunedFolder

plugin = str(lammps_jax_pjrt_cpu.PLUGIN_PATH)
xla_bridge.register_plugin("hooked", library_path=plugin, priority=1000)
jitting.find_target = lambda devices: "tpu_v5e"
warnings.filterwarnings("error", category=mgx.NotTunedWarning)


def pjrt(compiled):
    # A serialized executable of JAX is a header, which begins with its size, and then PJRT's.
    data = compiled.runtime_executable().serialize()
    size = shift = at = 0
    while True:
        size, shift, at = size | (data[at] & 127) << shift, shift + 7, at + 1
        if data[at - 1] < 128:
            return data[at + size :]


def key_of(function, *args):
    return Key.of_module(mgx.lower(function, *args), "tpu_v5e", installed_versions())


def keep(function, other, *args, folder="tuned", **changes):
    untuned = getattr(other, "untuned", other)
    made = untuned if hasattr(untuned, "lower") else jax.jit(untuned)
    executable = pjrt(made.lower(*args).compile())
    key = dataclasses.replace(key_of(function, *args), **changes)
    return TunedFolder(folder).keep(key, executable, {"cost_ps": 1, "program": folder})


def plain(step, *args):
    # The result of a call that warns, and the warning.
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", mgx.NotTunedWarning)
        result = step(*args)
    return result.tolist(), [
        str(one.message) for one in said if one.category is mgx.NotTunedWarning
    ]


def one_more(a):
    return a + 1


def hundred_more(a):
    return a + 100


a = jnp.zeros(2)
