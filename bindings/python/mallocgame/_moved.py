"""Names that have changed: for one release the old ones warn."""

import argparse
import functools
import operator
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def moved(package: str, name: str, modules: Mapping[str, str]) -> object:
    """Returns what a package had under a name before. AttributeError: it had nothing.

    modules: where in the package names are now, and these names with spaces between them.
    """
    for module, names in modules.items():
        if name in names.split():
            text = f"{package}.{name} is {package}.{module}.{name} now"
            warnings.warn(text, DeprecationWarning, stacklevel=3)
            return operator.attrgetter(f"{module}.{name}")(sys.modules[package])
    raise AttributeError(f"module '{package}' has no attribute {name!r}")


def former(package: str, name: str, names: Mapping[str, str]) -> object:
    """Returns what a package calls otherwise now. AttributeError: it had no such name."""
    if name not in names:
        raise AttributeError(f"module '{package}' has no attribute {name!r}")
    text = f"{package}.{name} is {package}.{names[name]} now"
    warnings.warn(text, DeprecationWarning, stacklevel=3)
    found: object = getattr(sys.modules[package], names[name])
    return found


def renamed(**names: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Lets a function take keyword arguments under former names, each given as former="now"."""

    def of(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> T:
            for former, now in names.items():
                if former in kwargs:
                    text = f"{function.__name__}: the argument {former} is called {now} now"
                    warnings.warn(text, DeprecationWarning, stacklevel=2)
                    kwargs[now] = kwargs.pop(former)
            return function(*args, **kwargs)

        return called

    return of


class FormerOption(argparse.Action):
    """Stores the value of an option under a former name, which isn't in the help, and warns.

    now: the option's name today.
    """

    def __init__(self, *args: Any, now: str, **kwargs: Any) -> None:
        hidden = {"default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
        super().__init__(*args, **{**kwargs, **hidden})
        self.now = now

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        print(f"{parser.prog}: {option_string} is called {self.now} now", file=sys.stderr)
        setattr(namespace, self.dest, values)
