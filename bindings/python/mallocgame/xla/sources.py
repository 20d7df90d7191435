"""JAX programs by name: a bundled workload, or a function of the user's."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

from mallocgame.by_name import find_object, in_a_line
from mallocgame.errors import InvalidInputError
from mallocgame.xla.compiler import missing_extra

Source = tuple[Callable[..., Any], tuple[Any, ...]]  # a function and shapes of its arguments

_ALLOWED = "a function that returns a pair (function, arguments)"


def workloads() -> Mapping[str, Callable[[], Source]]:
    """Returns the bundled models by name (examples/workloads in the repository)."""
    try:
        from mallocgame.workloads import WORKLOADS
    except ModuleNotFoundError as error:
        if error.name != "mallocgame.workloads":
            raise missing_extra(error.name or "jax") from None
        raise InvalidInputError(
            "this installation holds no workloads; name a module:function"
        ) from None
    return cast(Mapping[str, Callable[[], Source]], WORKLOADS)


def find_source(text: str) -> tuple[str, Callable[..., Any], tuple[Any, ...]]:
    """Returns name, function and arguments of a workload's name, or of module:function.

    module:function names a function without arguments that returns (function, arguments), the
    arguments being arrays or jax.ShapeDtypeStruct. The module is looked for in the current folder
    too. InvalidInputError: there is no such workload, module or function, it raises an error, or it
    returns something else.
    """
    _, colon, attribute = text.partition(":")
    if not colon:
        known = workloads()
        if text not in known:
            raise InvalidInputError(
                f"'{text}': no workload, module:function or folder{_close(text, list(known))}"
            )
        return text, *known[text]()
    function, arguments = _checked(text, _made(text, find_object(text)))
    return attribute, function, arguments


def _made(text: str, make: Any) -> Any:
    """Returns what the user's function returns, or the object itself if it is none."""
    if not callable(make):
        return make
    try:
        return make()
    except (Exception, SystemExit) as error:  # It may raise anything.
        told = in_a_line(error)
        if error.__traceback__ and error.__traceback__.tb_next is None:  # It was not even entered.
            told += f", allowed: {_ALLOWED}, without arguments of its own"
        raise InvalidInputError(f"'{text}': {told}") from error


def _checked(text: str, made: Any) -> Source:
    """Returns a function and its arguments. InvalidInputError says what there is instead."""
    if inspect.iscoroutine(made):
        made.close()  # else Python warns that nobody has awaited it
    if not isinstance(made, tuple) or len(made) != 2:
        size = f" of {len(made)}" if isinstance(made, tuple) else ""
        raise InvalidInputError(f"'{text}': found {type(made).__name__}{size}, allowed: {_ALLOWED}")
    function, arguments = made
    if not callable(function):
        raise InvalidInputError(
            f"'{text}': found {type(function).__name__} for the function, allowed: one that can be "
            "called, also one that jax.jit has wrapped"
        )
    if not isinstance(arguments, tuple | list):
        raise InvalidInputError(
            f"'{text}': found {type(arguments).__name__} for the arguments, allowed: a tuple or "
            "list of them, as in `return function, [x]`; functools.partial gives those that go by "
            "name"
        )
    return function, tuple(arguments)


def _close(text: str, names: list[str]) -> str:
    import difflib

    close = difflib.get_close_matches(text, names, n=3, cutoff=0.4)
    return f"; close: {', '.join(close)}" if close else f"; workloads: {', '.join(names)}"
