"""What a function takes on the device at hand, as XLA compiles it and tuned."""

import dataclasses
import functools
import hashlib
import json
import math
import os
import pathlib
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mallocgame._core import write_file
from mallocgame.errors import InvalidInputError
from mallocgame.xla.compiler import installed_versions, missing_extra
from mallocgame.xla.jitting import Jitted, NotTunedWarning, find_offer, find_target, take
from mallocgame.xla.lowering import lower
from mallocgame.xla.tuned_folders import TunedFolder

_SAMPLE_SECONDS = 0.01  # the least that a sample takes, by more calls, so that clocks don't matter
_MOST_CALLS = 1000
_WARM_UP = 3  # calls
_CONFIDENCE = 0.95
_RESAMPLES = 2000


@dataclasses.dataclass(frozen=True)
class Measured:
    """Seconds a call, measured on a device, in the order in which they were taken."""

    default: np.ndarray  # as XLA compiles it
    tuned: np.ndarray
    speedup: float  # the ratio of the medians
    low: float  # of the interval that holds the true ratio with a confidence of 95 %
    high: float
    device: str

    def __str__(self) -> str:
        """The medians and their ratio, as a sentence."""
        default, tuned = (1e6 * float(np.median(one)) for one in (self.default, self.tuned))
        return (
            f"{default:,.1f} µs as XLA does, {tuned:,.1f} µs tuned on {self.device}: "
            f"{self.speedup:.3f}x, 95 % between {self.low:.3f} and {self.high:.3f}"
        )


def measure(
    function: Callable[..., Any],
    *args: Any,
    executables: str | os.PathLike[str] | None = None,
    options: Mapping[str, str] | None = None,
    samples: int = 30,
    points: str | os.PathLike[str] | None = None,
    **kwargs: Any,
) -> Measured:
    """Times a function as XLA compiles it and tuned, on the device that its arguments are on.

    After a warm-up both are timed in turns, so that they share the moods of the machine. A sample
    is as many calls one after the other as take 10 ms, until the results are there. Arguments that
    are donated are copied before each call, which then is a sample by itself.

    function: a function, or one that jax.jit or jit() has wrapped, without static arguments.
    args, kwargs: of the call; arrays.
    executables: a folder of tuned executables. None: the folder of jit().
    options: compiler options by name, which are timed in place of an executable.
    samples: of each; 2 and more.
    points: a folder that gets the time as XLA compiles it, with the program (write_point).
    benchmarks/measured/predict.py compares such points with prices.

    InvalidInputError: there are fewer samples, nothing to time is given, or a point is asked for
    of a device whose instructions have no prices.
    """
    try:
        import jax
        from scipy import stats  # which JAX needs too
    except ModuleNotFoundError as error:
        raise missing_extra(error.name or "jax") from None
    given: Any = options
    if isinstance(given, str | os.PathLike):  # its former name, for one release
        text = "measure: a folder is given as executables now, not as options"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        executables, options = given, None
    if samples < 2:
        raise InvalidInputError(f"samples: found {samples}, allowed: 2 and above")
    target = None if points is None else find_target(_arguments_devices(args, kwargs))
    untuned: Any = getattr(function, "untuned", function)
    jitted = untuned if hasattr(untuned, "lower") else jax.jit(untuned)
    lowered: Any = jitted.lower(*args, **kwargs)
    default = lowered.compile()
    if options is not None:
        tuned = lowered.compile(dict(options)) if options else default
    else:
        tuned = _tuned(function, executables, lowered, args, kwargs) or default
    ways = [_Timed(compiled, lowered.args_info, args, kwargs) for compiled in (default, tuned)]
    calls = max(way.warm_up() for way in ways)
    seconds: tuple[list[float], list[float]] = ([], [])
    for turn in range(samples):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            seconds[which].append(ways[which].sample(calls))
    taken = np.array(seconds[0]), np.array(seconds[1])
    spread = stats.bootstrap(
        taken,
        _ratio,
        n_resamples=_RESAMPLES,
        confidence_level=_CONFIDENCE,
        method="percentile",
        vectorized=True,
        rng=0,
    ).confidence_interval
    measured = Measured(
        *taken,
        float(_ratio(*taken)),
        float(spread.low),
        float(spread.high),
        ", ".join(sorted({device.device_kind for device in _devices(ways[0].result)})),
    )
    if points is not None and target is not None:
        name = getattr(function, "__name__", "function").strip("<>")
        dtype = str(jax.tree.leaves((args, kwargs))[0].dtype)
        module = lower(untuned, *args, **kwargs)
        write_point(points, name, target, dtype, module, measured)
    return measured


def write_point(
    folder: str | os.PathLike[str],
    name: str,
    target: str,
    dtype: str,
    module: str,
    measured: Measured,
) -> pathlib.Path:
    """Writes a measured time and its program into a folder of points. Returns the point's file.

    The point is of the program as XLA compiles it. A later point of the same program on the same
    target takes the place of an earlier one.

    name: of the function. target: Target.title. dtype: of the first argument. module: StableHLO.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(f"{target}\n{module}".encode()).hexdigest()[:12]
    stem = f"{name}.{target.replace(':', '_')}.{digest}"
    write_file(folder / f"{stem}.mlir", module.encode())
    point = {
        "id": stem,
        "chip": target,
        "kind": name,
        "dtype": dtype,
        "module": f"{stem}.mlir",
        "measured_us": 1e6 * float(np.median(measured.default)),
        "samples_us": [round(1e6 * float(one), 3) for one in measured.default],
        "method": "host clock",
        "device": measured.device,
        "versions": installed_versions(),
    }
    file = folder / f"{stem}.json"
    write_file(file, (json.dumps(point, indent=1) + "\n").encode())
    return file


def _arguments_devices(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Returns the devices that the arguments are on, in the order of their ids."""
    import jax

    leaves = jax.tree.leaves(jax.device_put((args, kwargs)))
    found: set[Any] = set().union(*(leaf.devices() for leaf in leaves))
    return sorted(found, key=lambda device: device.id)


class _Timed:
    """A compiled function with the arguments of its calls."""

    def __init__(
        self, compiled: Any, args_info: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        import jax

        self._jax = jax
        self._compiled = compiled
        self._given = jax.device_put((args, kwargs))
        self._donated = jax.tree.map(lambda info: info.donated, args_info)
        self._copies = any(jax.tree.leaves(self._donated))
        self.result: Any = None

    def warm_up(self) -> int:
        """Calls it a few times. Returns how many calls make a sample."""
        last = min(self.sample(1) for _ in range(_WARM_UP))
        return 1 if self._copies else min(_MOST_CALLS, math.ceil(_SAMPLE_SECONDS / last))

    def sample(self, calls: int) -> float:
        """Returns the seconds of a call."""
        args, kwargs = self._given
        if self._copies:
            args, kwargs = self._jax.tree.map(
                lambda donated, arg: arg.copy() if donated else arg, self._donated, self._given
            )
        self._jax.block_until_ready((args, kwargs, self.result))
        begin = time.perf_counter()
        for _ in range(calls):
            self.result = self._compiled(*args, **kwargs)
        self._jax.block_until_ready(self.result)
        return (time.perf_counter() - begin) / calls


def _tuned(
    function: Any,
    folder: str | os.PathLike[str] | None,
    lowered: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Returns the executable in a folder. None: it warns that none can be taken, and why."""
    if folder is None and not isinstance(function, Jitted):
        raise InvalidInputError("executables: found None, allowed: a folder")
    where = function.folder if folder is None else TunedFolder(folder)
    offer, why_not = find_offer(function, where, args, kwargs)
    try:
        if offer is not None:
            return take(offer, functools.partial(lowered.compile, offer.options))
    except InvalidInputError as error:
        why_not = str(error)
    warnings.warn(f"measured as XLA compiles it: {why_not}", NotTunedWarning, stacklevel=3)
    return None


def _ratio(default: np.ndarray, tuned: np.ndarray, axis: int = -1) -> Any:
    return np.median(default, axis=axis) / np.median(tuned, axis=axis)


def _devices(result: Any) -> set[Any]:
    import jax

    return set().union(*(leaf.devices() for leaf in jax.tree.leaves(result)))
