"""Whether a tuned executable does on the device at hand what XLA's own does."""

import dataclasses
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mallocgame._moved import renamed
from mallocgame.errors import InvalidInputError
from mallocgame.xla.compiler import missing_extra
from mallocgame.xla.jitting import Jitted, find_offer, take
from mallocgame.xla.tuned_folders import TunedFolder


@dataclasses.dataclass(frozen=True)
class Check:
    """One thing that was tried."""

    name: str
    passed: bool
    said: str  # what was found


@dataclasses.dataclass(frozen=True)
class Verified:
    """All that verify() has tried, in that order."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether all went well."""
        return all(check.passed for check in self.checks)

    def __str__(self) -> str:
        """A line for each check."""
        return "\n".join(
            f"{'passed' if check.passed else 'FAILED'}: {check.name}: {check.said}"
            for check in self.checks
        )


@renamed(options="executables")
def verify(
    function: Callable[..., Any],
    *args: Any,
    executables: str | os.PathLike[str] | None = None,
    tolerance: float = 0.0,
    **kwargs: Any,
) -> Verified:
    """Runs a tuned executable and XLA's own, and compares them. For its first run on a device.

    function: a function, or one that jax.jit or jit() has wrapped, without static arguments.
    args, kwargs: of the call; arrays. Those that are donated are copied before.
    executables: a folder of tuned executables. None: the folder of jit().
    tolerance: how far a number may be from XLA's, as a part of the largest one in its array.

    InvalidInputError: no executable is for this call, or it can't be taken.
    """
    try:
        import jax
    except ModuleNotFoundError as error:
        raise missing_extra(error.name or "jax") from None
    if executables is None and not isinstance(function, Jitted):
        raise InvalidInputError("executables: found None, allowed: a folder")
    folder = function.folder if isinstance(function, Jitted) and executables is None else None
    folder = TunedFolder(executables or "") if folder is None else folder
    offer, why_not = find_offer(function, folder, args, kwargs)
    if offer is None:
        raise InvalidInputError(f"verify: {why_not}")
    untuned: Any = getattr(function, "untuned", function)
    lowered: Any = (untuned if hasattr(untuned, "lower") else jax.jit(untuned)).lower(
        *args, **kwargs
    )
    tuned = take(offer, functools.partial(lowered.compile, offer.options))
    return Verified(tuple(_checks(lowered.compile(), tuned, (args, kwargs), tolerance)))


def _checks(default: Any, tuned: Any, given: Any, tolerance: float) -> Iterator[Check]:
    expected, deleted = _call(default, given)
    first, its_deleted = _call(tuned, given)
    yield _compared("results are those of XLA's executable", expected, first, tolerance)
    yield Check(
        "donated arguments are taken",
        deleted == its_deleted,
        f"{sum(its_deleted)} of {len(its_deleted)}, with XLA {sum(deleted)}",
    )
    # What a preload left in fast memory must not be what another run takes.
    _, (second, _) = _call(tuned, given), _call(tuned, given)
    yield _compared("results are the same after three runs in a row", first, second)
    _call(default, given)
    third, _ = _call(tuned, given)
    yield _compared("results are the same after another program", first, third)
    yield _reloaded(tuned, given, first)


def _reloaded(tuned: Any, given: Any, expected: Any) -> Check:
    """Tries what JAX does to keep an executable in a file."""
    from jax.experimental import serialize_executable

    name = "results are the same after serializing and loading it"
    try:
        devices = tuned.runtime_executable().local_devices()
        data, inputs, outputs = serialize_executable.serialize(tuned)
        again = serialize_executable.deserialize_and_load(
            data, inputs, outputs, execution_devices=devices
        )
        result, _ = _call(again, given)
    except Exception as error:  # Any plugin has words of its own.
        return Check(name, False, str(error).partition("\n")[0])
    return _compared(name, expected, result)


def _call(compiled: Any, given: Any) -> tuple[list[np.ndarray], list[bool]]:
    """Returns the results of a call, and which of its arguments it took."""
    import jax

    args, kwargs = jax.tree.map(lambda leaf: jax.numpy.array(leaf, copy=True), given)
    results = jax.tree.leaves(compiled(*args, **kwargs))
    taken = [leaf.is_deleted() for leaf in jax.tree.leaves((args, kwargs))]
    return [np.asarray(result) for result in results], taken


def _compared(
    name: str, expected: list[np.ndarray], found: list[np.ndarray], tolerance: float = 0.0
) -> Check:
    if all(one.tobytes() == other.tobytes() for one, other in zip(expected, found, strict=True)):
        return Check(name, True, "bitwise equal")
    worst = max(map(_distance, expected, found))
    return Check(name, worst <= tolerance, f"off by {worst:.3g}, allowed: {tolerance:.3g}")


def _distance(expected: np.ndarray, found: np.ndarray) -> float:
    """Returns the largest difference as a part of the largest number."""
    wide = complex if np.iscomplexobj(expected) else float
    one, other = expected.astype(wide), found.astype(wide)
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    if same.all():
        return 0.0
    with np.errstate(invalid="ignore"):
        largest = np.abs(one)[np.isfinite(one)].max(initial=0.0)
        off = np.abs(one - other)[~same].max() / (largest or 1.0)
    return float("inf") if np.isnan(off) else float(off)
