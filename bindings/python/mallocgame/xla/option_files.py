"""Compiler options of a plan, options as a file, and the request that options are of."""

import collections
import dataclasses
import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mallocgame._core import Plan, Program, find_uses, read_file, write_file
from mallocgame.errors import InvalidInputError
from mallocgame.programs import decode
from mallocgame.xla.captures import Capture
from mallocgame.xla.overrides import KEEP, PIN, PREFETCH, Override, Request, request
from mallocgame.xla.settings import EAGERNESS, PRELOADS, by_name, read_eagerness, read_settings

FORMAT = "mallocgame compiler options"
_OVERRIDE_TEXT = re.compile(
    r"overrides \{ (?:hlo_position_matcher|hlo_operand_filter) \{"
    r' instruction_name_regex: "(?P<instruction>[^"]*)"'
    r"(?: operand_number: (?P<operand>\d+))?"
    r"(?: size_gte: (?P<size>\d+) size_lte: \d+)?"
    r"(?: tuple_index \{(?P<index>(?: index: \d+)+) \})? \} "
    r"(?:override_options \{ assign_(?:first: true|value: (?P<rank>-?\d+)) \}|(?P<action>\w+) \{"
    r"(?: logical_time: (?P<time>\d+) (?P<strict>strict_timing: true )?)?\})"
    r"(?P<preload> apply_to_cross_program_prefetches: true)? \}"
)


def options(capture: Capture, plan: Plan) -> dict[str, str]:
    """Returns the options that ask XLA:TPU for a plan of `capture.program`.

    They are for jax.jit(..., compiler_options=...). Nothing is compiled, so the compiler may refuse
    some of them; `apply` gives options that it accepts.
    """
    return capture.target.options | request(capture.program, plan, capture.default.before).options()


def save_options(values: dict[str, str], path: str | os.PathLike[str], **about: object) -> None:
    """Writes options as JSON; `about` is kept beside them (program, versions ...)."""
    document = {"format": FORMAT, **about, "compiler_options": values}
    write_file(os.fsencode(path), (json.dumps(document, indent=1) + "\n").encode())


def load_options(path: str | os.PathLike[str]) -> dict[str, str]:
    """Reads what save_options wrote. MissingFileError; InvalidInputError: it is no such file."""
    document = read_document(path)
    values = document.get("compiler_options") if isinstance(document, dict) else None
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise InvalidInputError(
            f"{os.fspath(path)}: no object compiler_options of text values; "
            f"found {str(values)[:60]}"
        )
    return values


def read_document(path: str | os.PathLike[str]) -> Any:
    """Reads what stands in a file of options. MissingFileError; InvalidInputError: it's no JSON."""
    text = os.fspath(path)
    try:
        return json.loads(decode(read_file(os.fsencode(text))))
    except ValueError as error:
        raise InvalidInputError(f"{text}: {error}") from None


def read_request(options: Mapping[str, str], program: Program, before: bytes) -> Request:
    """Returns the request that Request.options() gave the options for.

    before: the HloProto that `program` was made of. InvalidInputError: they ask for something else,
    or name what the program doesn't have.
    """
    buffers = {name: buffer for buffer, name in enumerate(program.buffer_names)}
    used: dict[tuple[str, int, tuple[int, ...]], int] = {}
    for access, operand, index, _ in find_uses(program, before):
        instruction = program.instruction_names[program.accesses["tick"][access]]
        used.setdefault((instruction, operand, tuple(index)), access)
    asked = []
    for found in _texts(options.get("xla_tpu_msa_tensor_overrides", "")):
        instruction, index, use = _name_of(found), _index_of(found), _number(found, "operand")
        accesses: tuple[int, ...] = ()
        buffer: int | None = None
        if use is None:
            buffer = buffers.get(_buffer_name(instruction, index))
        elif (instruction, use, index) in used:
            accesses = (used[instruction, use, index],)
            buffer = int(program.accesses["buffer"][accesses[0]])
        action, strict = found["action"], found["action"] != PREFETCH or bool(found["strict"])
        if buffer is None or action not in (KEEP, PIN, PREFETCH):
            raise InvalidInputError(f"options: {program.name} has nothing like: {found[0]}")
        time, size = _number(found, "time"), _number(found, "size")
        asked.append(
            Override(action, buffer, accesses, instruction, use, index, time, strict, size)
        )
    turns = list(_texts(options.get("xla_tpu_msa_sort_order_overrides", "")))
    for found in turns:
        if not found["preload"] and found["size"] is None:
            raise InvalidInputError(f"options: a place in the order without a size: {found[0]}")
    preloads = tuple(_name_of(found) for found in turns if found["preload"])
    if options.get(PRELOADS) == str(len(preloads)):
        options = {name: value for name, value in options.items() if name != PRELOADS}
    eagerness, others = read_eagerness(options.get(EAGERNESS, ""))
    options = {name: value for name, value in options.items() if name != EAGERNESS}
    if others is not None:
        options[EAGERNESS] = others
    return Request(
        _with_accesses(asked, program),
        preloads,
        read_settings(options),
        order=tuple(
            (_buffer_name(_name_of(found), _index_of(found)), int(found["size"]))
            for found in turns
            if not found["preload"]
        ),
        eagerness=eagerness,
    )


def _with_accesses(asked: list[Override], program: Program) -> tuple[Override, ...]:
    """Makes overrides of definitions be about all accesses that no override of a use is about."""
    by_use = {access for one in asked for access in one.accesses}
    others = collections.defaultdict(list)
    for access, buffer in enumerate(program.accesses["buffer"]):
        if access not in by_use:
            others[int(buffer)].append(access)
    return tuple(
        one
        if one.operand is not None
        else dataclasses.replace(one, accesses=tuple(others[one.buffer]))
        for one in asked
    )


def _texts(text: str) -> Iterator[re.Match[str]]:
    """Yields the overrides in a text proto. InvalidInputError."""
    at = 0
    while at < len(text):
        found = _OVERRIDE_TEXT.match(text, at)
        if found is None:
            raise InvalidInputError(f"options: not an override of mallocgame: {text[at : at + 80]}")
        yield found
        at = found.end() + 1


def _number(found: re.Match[str], group: str) -> int | None:
    return None if found[group] is None else int(found[group])


def _name_of(found: re.Match[str]) -> str:
    return by_name(found["instruction"])


def _index_of(found: re.Match[str]) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", found["index"] or "")))


def _buffer_name(instruction: str, index: tuple[int, ...]) -> str:
    return f"{instruction}{{{','.join(map(str, index))}}}" if index else instruction
