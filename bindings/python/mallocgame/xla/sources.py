"""JAX programs by name: a bundled workload, or a function of the user's."""

from collections.abc import Callable, Mapping
from typing import Any

from mallocgame.by_name import find_object
from mallocgame.errors import InvalidInputError
from mallocgame.xla.compiler import missing_extra

Source = tuple[Callable[..., Any], tuple[Any, ...]]  # a function and shapes of its arguments


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
    return WORKLOADS


def find_source(text: str) -> tuple[str, Callable[..., Any], tuple[Any, ...]]:
    """Returns name, function and arguments of a workload's name, or of module:function.

    module:function names a function without arguments that returns (function, arguments), the
    arguments being arrays or jax.ShapeDtypeStruct. The module is looked for in the current folder
    too. InvalidInputError: there is no such workload, module or function.
    """
    _, colon, attribute = text.partition(":")
    if not colon:
        known = workloads()
        if text not in known:
            raise InvalidInputError(
                f"'{text}': no workload, module:function or folder{_close(text, list(known))}"
            )
        return text, *known[text]()
    make = find_object(text)
    made = make() if callable(make) else make
    if not (
        isinstance(made, tuple)
        and len(made) == 2
        and callable(made[0])
        and isinstance(made[1], tuple | list)
    ):
        found = type(made).__name__
        raise InvalidInputError(
            f"'{text}': found {found}, allowed: a function that returns (function, arguments)"
        )
    return attribute, made[0], tuple(made[1])


def _close(text: str, names: list[str]) -> str:
    import difflib

    close = difflib.get_close_matches(text, names, n=3, cutoff=0.4)
    return f"; close: {', '.join(close)}" if close else f"; workloads: {', '.join(names)}"
