"""Which named scope and which layer each instruction of a program is of.

Scopes are read from XLA's op_name, as in jit(step)/transpose(jvp(layer_3))/mlp/dot_general, which
is of layer_3/mlp: the program as a whole, transformations of JAX and the operation itself are left
out, so that forward and backward pass are of one scope.

A layer is a scope up to the first name that ends in a number. Where no scope has one, a layer is
what the arguments are called, as in params['layers'][3]['query']: an instruction is of the layer
whose arguments it reads, and one that reads none is of that of the instruction before it.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from mallocgame._core import PARAMETER, Program
from mallocgame.errors import InvalidInputError

GROUPINGS = ("layer", "scope", "opcode")
OTHER = "(no scope)"  # what the compiler added, or what the program computes outside of all scopes

Path = tuple[str, ...]

_WRAPPED = re.compile(r"\w+\((.*)\)")
_OF_JAX = {"body", "cond", "closed_call", "checkpoint", "rematted_computation", ""}
_NUMBERED = re.compile(r"(.*?)(\d+)")
_WHOLES = {"params", "opt_state", "mu", "nu", "m", "v", "trace", "ema"}
_KEY = re.compile(r"\['([^']*)'\]|\[(\d+)\]|\.(\w+)")


class Group(NamedTuple):
    """What an instruction is told under.

    together: the same of all that repeat under another number, as in layer_*/mlp; it is `name`
    where nothing repeats.
    """

    name: str
    together: str


def default_grouping(program: Program) -> str:
    """Returns layer, if layers of the program repeat, else scope or opcode."""
    paths = [scope_path(name) for name in program.op_names]
    if any(_repeats(_layers(program, paths))):
        return "layer"
    return "scope" if any(paths) else "opcode"


def group_instructions(program: Program, by: str, depth: int = 2) -> list[Group]:
    """Returns the group of each tick.

    by: layer, scope or opcode. depth: how many names of a scope count.

    InvalidInputError: there is no such grouping, or nothing in the program has a layer's number.
    """
    if by not in GROUPINGS:
        raise InvalidInputError(f"by: found '{by}', allowed: {', '.join(GROUPINGS)}")
    if by == "opcode":
        return [Group(opcode, opcode) for opcode in program.instruction_opcodes]
    paths = [scope_path(name) for name in program.op_names]
    if by == "scope":
        return _together([path[:depth] for path in paths])
    layers = _layers(program, paths)
    if not any(_repeats(layers)):
        raise InvalidInputError(
            f"{program.name}: nothing in it is called after a layer and its number: neither scopes "
            "(jax.named_scope('layer_3'), or modules of Flax) nor arguments "
            "(params['layers'][3]['query']); programs captured by older versions have no scopes"
        )
    return _together(layers)


def scope_path(op_name: str) -> Path:
    """Returns the names of the scopes around an operation, the outermost first."""
    names: list[str] = []
    for part in op_name.split("/")[1:-1]:
        while wrapped := _WRAPPED.fullmatch(part):
            part = wrapped[1]
        if part not in _OF_JAX and names[-1:] != [part]:
            names.append(part)
    return tuple(names)


def _layers(program: Program, paths: Sequence[Path]) -> list[Path]:
    layers = [_layer_of(path) for path in paths]
    return layers if any(_repeats(layers)) else _layers_of_arguments(program)


def _layer_of(path: Path) -> Path:
    """Returns the path up to the first number; without one, its first name."""
    for place, name in enumerate(path):
        if _NUMBERED.fullmatch(name):
            return path[: place + 1]
    return path[:1]


def _star(path: Path) -> Path:
    """Returns the path with a star for the number of the first name that ends in one."""
    for place, name in enumerate(path):
        if found := _NUMBERED.fullmatch(name):
            return (*path[:place], f"{found[1]}*", *path[place + 1 :])
    return path


def _repeats(paths: Sequence[Path]) -> list[bool]:
    """Returns of each path whether it is there under another number as well."""
    several = Counter(_star(path) for path in set(paths))
    return [several[_star(path)] > 1 for path in paths]


def _together(paths: Sequence[Path]) -> list[Group]:
    groups = []
    for path, repeats in zip(paths, _repeats(paths), strict=True):
        name = "/".join(path) or OTHER
        groups.append(Group(name, "/".join(_star(path)) if repeats else name))
    return groups


def _layers_of_arguments(program: Program) -> list[Path]:
    """Returns the layer of each tick by what arguments are called; () before the first."""
    names = dict(zip(program.instruction_names, program.op_names, strict=True))
    sizes = program.buffers["size_bytes"].tolist()
    layers = [
        _argument_layer(names.get(name, "")) if origin == PARAMETER else ()
        for name, origin in zip(program.buffer_names, program.buffers["origin"], strict=True)
    ]
    rows = program.instructions
    buffers = program.accesses["buffer"].tolist()
    regions, first, count = (
        rows[name].tolist() for name in ("region", "first_access", "access_count")
    )
    last: dict[int, Path] = {}  # by region
    found = []
    for region, begin, accesses in zip(regions, first, count, strict=True):
        read = [one for one in buffers[begin : begin + accesses] if layers[one]]
        if read:
            last[region] = layers[max(read, key=sizes.__getitem__)]
        found.append(last.get(region, ()))
    return found


def _argument_layer(argument: str) -> Path:
    """Returns layers_3 of params['layers'][3]['query'], embedding of params['embedding'].

    What the function and optimizers call the whole is left out, so that parameters and moments of
    them, as opt_state[0].mu['layers'][3]['query'], are of one layer. () is of no keys but numbers.
    """
    keys = [name or number or field for name, number, field in _KEY.findall(argument)]
    while keys and (keys[0].isdigit() or keys[0] in _WHOLES):
        del keys[0]
    for place, key in enumerate(keys[:-1]):
        if _NUMBERED.fullmatch(key):
            return ("_".join(keys[: place + 1]),)
    return tuple(keys[:1])
