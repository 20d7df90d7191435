"""The command line of a benchmark: a function whose signature says what it takes."""

import argparse
import contextlib
import dataclasses
import inspect
import pathlib
import sys
import typing
from collections.abc import Callable, Sequence
from typing import Any

from mallocgame._jobs import HERE, Workers, workers_of
from mallocgame._jobs.cluster import ADDRESSES, check_address
from mallocgame.errors import InvalidInputError, MallocGameError
from mallocgame.experiments.grid import Grid, name_of
from mallocgame.experiments.running import Row, run, tell


@dataclasses.dataclass(frozen=True)
class Bench:
    """Where a benchmark keeps its answers, and who measures."""

    folder: pathlib.Path
    workers: Workers = HERE
    only: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    _used: set[str] = dataclasses.field(default_factory=set)  # axes of `only` that a grid had

    def run(self, measure: Callable[..., Any], grid: Grid, **how: Any) -> list[Row]:
        """Runs a grid in the folder, or its cells of --only; `how` goes to run().

        InvalidInputError: no cell is of --only, or the first grid has none of its axes.
        """
        chosen = grid.only(self.only)
        self._used.update(self.only.keys() & {*grid.axes})
        if self.only and not self._used:
            raise InvalidInputError(
                f"--only: found {', '.join(self.only)}, allowed: {', '.join(grid.axes)}"
            )
        if len(grid) and not len(chosen):
            example = " ".join(f"{axis}={name_of(next(iter(grid))[axis])}" for axis in grid.axes)
            names = " ".join(f"{axis}={','.join(names)}" for axis, names in self.only.items())
            raise InvalidInputError(f"--only: found {names}, allowed: such as {example}")
        return run(measure, chosen, self.folder, **{"workers": self.workers, "done": tell} | how)


def main(benchmark: Callable[..., int | None], arguments: Sequence[str] | None = None) -> None:
    """Runs a benchmark by its command line, and ends with the status that it returns.

        def benchmark(bench: Bench, *programs: str, seconds: float = 60, cold: bool = False): ...

    The module's docstring is the help. A parameter Bench is FOLDER with --jobs, --ray and --only,
    and Workers is --jobs and --ray. *NAME is any number of texts. Every keyword is an option. A
    bool is a flag, and a Literal has its choices. tuple[KIND, ...] takes several, which commas may
    separate; those with settings, as in `a:x=1,y=2;b`, semicolons. `seeds` is how many, which are
    0, 1 ..., or the numbers, as in 0,3. Other types are called with the text. Options of several
    may be repeated; spaces separate values where there is no *NAME.
    """
    parser = parser_of(benchmark)
    options = vars(parser.parse_intermixed_args(arguments))
    only: dict[str, list[str]] = dict(options.pop("only", ()))
    try:
        with contextlib.ExitStack() as stack:
            if "jobs" in options:
                jobs, ray = options.pop("jobs"), options.pop("ray")
                workers = stack.enter_context(workers_of(jobs, ray, here=True))
            given: list[Any] = []
            for name, one in inspect.signature(benchmark, eval_str=True).parameters.items():
                if one.annotation is Bench:
                    folder = options.pop("folder")
                    folder.mkdir(parents=True, exist_ok=True)
                    given.append(Bench(folder, workers, only))
                elif one.annotation == Workers:
                    given.append(workers)
                elif one.kind is one.VAR_POSITIONAL:
                    given += options.pop(name)
                elif one.kind is one.POSITIONAL_OR_KEYWORD:
                    given.append(options.pop(name))
            sys.exit(benchmark(*given, **options))
    except MallocGameError as error:
        sys.exit(f"{parser.prog}: {error}")
    except (LookupError, ValueError):
        if not only:
            raise
        sys.exit(f"{parser.prog}: --only leaves too little for the table; {folder} has the answers")


def parser_of(benchmark: Callable[..., int | None]) -> argparse.ArgumentParser:
    """Returns the parser of main(), to be asked by parse_intermixed_args."""
    parser = argparse.ArgumentParser(
        description=inspect.getmodule(benchmark).__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    named = inspect.signature(benchmark, eval_str=True).parameters
    # Texts that stand behind an option would be taken for more values of it.
    any_number = "+" if all(one.kind is not one.VAR_POSITIONAL for one in named.values()) else 1
    for name, one in named.items():
        _add(parser, name, one, any_number)
    return parser


def _add(
    parser: argparse.ArgumentParser, name: str, one: inspect.Parameter, any_number: int | str
) -> None:
    kind, default = one.annotation, one.default
    if kind is Bench:
        parser.add_argument("folder", type=pathlib.Path, help="keeps the answers; goes on with it")
        _add_workers(parser)
        parser.add_argument(
            "--only",
            type=_axis,
            action="extend",
            nargs=any_number,
            default=[],
            metavar="AXIS=NAME,...",
            help="only cells with these values",
        )
        return
    if kind == Workers:
        _add_workers(parser)
        return
    if one.kind is one.VAR_POSITIONAL:
        parser.add_argument(name, nargs="*", metavar=name.upper().removesuffix("S"))
        return
    if one.kind is one.POSITIONAL_OR_KEYWORD:
        parser.add_argument(name, type=kind)
        return
    flag = f"--{name.replace('_', '-')}"
    if kind is bool:
        parser.add_argument(flag, action="store_true")
        return
    if name == "seeds":
        parser.add_argument(flag, type=_seeds, default=default, help=f"({len(default)})")
        return
    if type(None) in typing.get_args(kind):
        (kind,) = set(typing.get_args(kind)) - {type(None)}
    if typing.get_origin(kind) is tuple:
        part = typing.get_args(kind)[0]
        choices = typing.get_args(part)
        parser.add_argument(
            flag,
            action=_Several,
            nargs=any_number,
            default=default,
            type=_parts(choices, str if choices else part),
            help=f"of {', '.join(choices)}" if choices else None,
        )
        return
    choices = typing.get_args(kind)
    parser.add_argument(
        flag,
        type=str if choices else kind,
        default=default,
        choices=choices or None,
        help=None if default is None else f"({default})",
    )


def _add_workers(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--jobs", type=int, default=1, metavar="N", help="side by side (1)")
    group.add_argument("--ray", type=_ray, metavar="ADDRESS", help=f"a cluster: {ADDRESSES}")


class _Several(argparse.Action):
    """Makes one tuple of the lists of all that are given."""

    def __call__(self, parser: Any, options: Any, lists: Any, _option: Any = None) -> None:
        now = getattr(options, self.dest)
        so_far = () if now is parser.get_default(self.dest) else now
        setattr(options, self.dest, (*so_far, *(one for several in lists for one in several)))


def _seeds(text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part) for part in text.rstrip(",").split(","))
    except ValueError:
        numbers = (-1,)
    if min(numbers) < 0:
        raise argparse.ArgumentTypeError(f"found {text}, allowed: a number, or several, as in 0,3")
    return numbers if "," in text else tuple(range(numbers[0]))


def _split(text: str) -> list[str]:
    separator = ";" if ";" in text or "=" in text else ","
    return [one.strip() for one in text.split(separator) if one.strip()]


def _parts(choices: tuple[str, ...], part: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    def read(text: str) -> list[Any]:
        found = _split(text)
        for one in found:
            if choices and one not in choices:
                raise argparse.ArgumentTypeError(f"found {one}, allowed: {', '.join(choices)}")
        return [part(one) for one in found]

    return read


def _axis(text: str) -> tuple[str, list[str]]:
    axis, equals, names = text.partition("=")
    if not (axis and equals and names):
        raise argparse.ArgumentTypeError(f"found {text}, allowed: AXIS=NAME,NAME")
    return axis, _split(names)


def _ray(text: str) -> str:
    try:
        return check_address(text)
    except InvalidInputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
