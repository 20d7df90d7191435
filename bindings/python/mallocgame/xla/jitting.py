"""jax.jit with the executables that were tuned for a program before."""

import contextlib
import functools
import inspect
import logging
import math
import os
import sys
import types
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

from mallocgame._moved import renamed
from mallocgame.errors import InvalidInputError, MallocGameError
from mallocgame.xla import hook
from mallocgame.xla.compiler import installed_versions, missing_extra
from mallocgame.xla.lowering import compiler_options, lower
from mallocgame.xla.stablehlo import device_count
from mallocgame.xla.targets import target_of_device
from mallocgame.xla.tuned_folders import Key, TunedFolder, TunedProgram

_LOG = logging.getLogger("mallocgame.xla")
# Chips whose slices have two dimensions.
_FLAT = ("TPU v4 lite", "TPU v5 lite", "TPU v5e", "TPU v6 lite", "TPU v6e")


class NotTunedWarning(UserWarning):
    """A function is compiled as XLA does, because nothing in the folder fits.

    A strict jit() raises it instead.
    """


@renamed(options="executables")
def jit(
    function: Callable[..., Any] | None = None,
    /,
    *,
    executables: str | os.PathLike[str],
    strict: bool = False,
    **settings: Any,
) -> Any:
    """Returns what jax.jit() returns, but with executables that tune() has made before.

    executables: the folder that tune(executables=...) or `mallocgame xla tune -o ...` has written.
    For each kind of arguments jit() takes the executable of the very same program, for the same
    chip and versions of jax, jaxlib and libtpu. Without one, a NotTunedWarning says once why, and
    XLA compiles as usual, as on a machine without a TPU.
    strict: whether that warning is raised, at each call, and nothing is compiled or run.
    settings: as of jax.jit (static_argnums, donate_argnums, in_shardings ...).

    It can be a decorator: @mgx.jit(executables="tuned"). Inside other transformations of JAX the
    function is a part of a larger program, whose own executables count, and `strict` says nothing.
    """
    if function is None:
        return functools.partial(jit, executables=executables, strict=strict, **settings)
    return Jitted(function, TunedFolder(executables), settings, strict)


class Jitted:
    """A function as jit() returns it. `untuned` is what jax.jit() makes of it by itself."""

    def __init__(
        self,
        function: Callable[..., Any],
        folder: TunedFolder,
        settings: dict[str, Any],
        strict: bool = False,
    ) -> None:
        try:
            import jax
        except ModuleNotFoundError as error:
            raise missing_extra(error.name or "jax") from None
        if settings.get("compiler_options") or compiler_options(function):
            raise InvalidInputError(
                "compiler_options: found some; they can't change what was compiled before. A "
                "capture of jax.jit(function, compiler_options=...) is compiled with them"
            )
        self._jax = jax
        self._function = function
        self._name = getattr(function, "__name__", repr(function))
        self.folder = folder
        self.strict = strict
        self._settings = settings
        self._said: set[str] = set()
        self._picked: dict[Hashable, Any] = {}  # a function of jax.jit by the kind of arguments
        self._made: dict[tuple[tuple[str, str], ...], Any] = {}  # the same by its options
        self.untuned = self._with({})
        self._static_places, self._static_names = _statics(function, settings)
        functools.update_wrapper(self, function)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickles a function that has its name, as a decorated one, by the name."""
        name: str = getattr(self, "__qualname__", "")
        place: Any = sys.modules.get(self.__module__)
        for part in name.split("."):
            place = getattr(place, part, None)
        if place is self:
            return name
        return Jitted, (self._function, self.folder, self._settings, self.strict)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.picked(*args, **kwargs)(*args, **kwargs)

    def __get__(self, instance: Any, _: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """Returns what jax.jit(...).lower() does; its compile() takes the executable."""
        return self.picked(*args, **kwargs).lower(*args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """Returns what jax.jit(...).trace() does; its lower().compile() takes the executable."""
        return self.picked(*args, **kwargs).trace(*args, **kwargs)

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the shapes of the results."""
        return self.untuned.eval_shape(*args, **kwargs)

    def clear_cache(self) -> None:
        """Forgets what was compiled, and looks into the folder again."""
        self._picked.clear()
        for made in self._made.values():
            made.clear_cache()

    def picked(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the function of jax.jit that takes what fits these arguments."""
        from jax._src import core

        if not core.trace_state_clean():
            return self.untuned
        try:
            kind = self._kind(args, kwargs)
            found = self._picked.get(kind)
        except TypeError:  # JAX can't take these either, and says so.
            return self.untuned
        if found is None:
            found = self._picked[kind] = self._pick(args, kwargs)
        return found

    def _kind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Hashable:
        """Returns all that the lowered program depends on."""
        from jax._src import config

        static, dynamic = self._parted(args, kwargs)
        leaves, tree = self._jax.tree.flatten(dynamic)
        return static, tree, tuple([self._kind_of(leaf) for leaf in leaves]), config.trace_context()

    def _parted(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Hashable, Any]:
        """Returns the static arguments, and the others."""
        if not self._static_places and not self._static_names:
            return (), (args, kwargs)
        places = {place + len(args) * (place < 0) for place in self._static_places}
        names = sorted(self._static_names & kwargs.keys())
        static = (
            tuple(arg for place, arg in enumerate(args) if place in places),
            tuple((name, kwargs[name]) for name in names),
        )
        return static, (
            [None if place in places else arg for place, arg in enumerate(args)],
            {name: value for name, value in kwargs.items() if name not in names},
        )

    def _kind_of(self, leaf: Any) -> Hashable:
        if isinstance(leaf, self._jax.Array):
            return leaf.aval, leaf.sharding, leaf.committed
        return self._jax.typeof(leaf), getattr(leaf, "sharding", None)

    def _pick(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        shardings = self._settings.get("in_shardings")
        offer, why_not = find_offer(self.untuned, self.folder, args, kwargs, shardings)
        if offer is None:
            return self._as_xla_does(why_not)
        tuned = self._with(offer.options)
        try:
            # The call takes what was compiled here.
            take(offer, tuned.lower(*args, **kwargs).compile)
        except InvalidInputError as error:
            return self._as_xla_does(str(error))
        _LOG.info("%s: takes the executable of %s", self._name, offer.source)
        return tuned

    def _as_xla_does(self, why: str) -> Any:
        """Says once why no executable is taken. NotTunedWarning: it must be one."""
        if self.strict:
            raise NotTunedWarning(f"{self._name} is not tuned, and strict: {why}")
        if why not in self._said:
            self._said.add(why)
            text = f"{self._name} is compiled as XLA does: {why}"
            warnings.warn(text, NotTunedWarning, stacklevel=5)  # where the function is called
        return self.untuned

    def _with(self, options: dict[str, str]) -> Any:
        """Returns the function of jax.jit, the same one for the same options."""
        made = tuple(sorted(options.items()))
        if made not in self._made:
            self._made[made] = self._jax.jit(
                self._function, compiler_options=options or None, **self._settings
            )
        return self._made[made]


def find_offer(
    function: Callable[..., Any],
    folder: TunedFolder,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    shardings: Any = None,
) -> tuple[hook.Offer | None, str]:
    """Returns the executable in a folder for a call of a function, else why there is none.

    A compile with the offer's options takes it.

    shardings: those that jax.jit was told of.
    """
    try:
        devices = _devices((args, kwargs, shardings))
        target = find_target(devices)
        module = lower(function, *args, **kwargs)
        if device_count(module) != len(devices):
            return None, f"it is for {device_count(module)} devices, its arguments on others"
        key = Key.of_module(module, target, installed_versions())
        tuned = folder.find(key)
        if tuned is None:
            return None, folder.why_not(key)
        return _offer(tuned), ""
    except MallocGameError as error:
        return None, str(error)
    except Exception as error:  # JAX can still compile.
        return None, f"{type(error).__name__}: {error}"


def take(offer: hook.Offer, compile_asking: Callable[[], Any]) -> Any:
    """Compiles with an offer's options. Returns what was made, which is its executable.

    InvalidInputError: the executable can't be taken.
    """
    try:
        with _not_cached():
            made = compile_asking()
    except hook.HookError as error:
        raise InvalidInputError(f"{offer.source} can't be taken: {error}") from None
    offer.settled = True
    return made


@contextlib.contextmanager
def _not_cached() -> Iterator[None]:
    """Has JAX write nothing into its persistent cache, in this thread.

    The folder holds the executable already, and a plugin needn't be able to serialize again what it
    has deserialized.
    """
    from jax._src import config

    with config.persistent_cache_min_compile_time_secs(math.inf):
        yield


def _offer(tuned: TunedProgram) -> hook.Offer:
    """Offers an executable to compiles. InvalidInputError, HookError."""
    name = f"{tuned.key.digest}.{tuned.sha256}"
    return hook.offer(name, tuned.executable(), tuned.key.signature, str(tuned.path))


def find_target(devices: Sequence[Any]) -> str:
    """Returns the Target.title of a program on these devices, in the order of its partitions.

    InvalidInputError: executables can't be for them.
    """
    first = devices[0]
    if first.platform != "tpu":
        raise InvalidInputError(f"it is for {first.platform}, and executables are for TPUs")
    target = target_of_device(first.device_kind, getattr(first, "num_cores", 1))
    if target is None:
        raise InvalidInputError(f"no target is a {first.device_kind}")
    return target + _layout(devices)


def _layout(devices: Sequence[Any]) -> str:
    """Returns how devices are laid out, as a Target's title ends; empty: there is one.

    InvalidInputError: they are no whole slice in the order in which the compiler counts them.
    """
    if len(devices) == 1:
        return ""
    corners = [tuple(device.coords) for device in devices]
    sizes = [max(column) - min(column) + 1 for column in zip(*corners, strict=True)]
    ids = [device.id for device in devices]
    if len({*corners}) != math.prod(sizes) or ids != sorted(ids):
        raise InvalidInputError(f"its devices {ids} are no whole slice in the order of their ids")
    flat = devices[0].device_kind in _FLAT
    return ":" + "x".join(map(str, sizes[:2] if flat else sizes))


def _devices(given: Any) -> tuple[Any, ...]:
    """Returns the devices that a program is compiled for, in the order of its partitions."""
    import jax

    for leaf in jax.tree.leaves(given):
        sharding: Any = getattr(leaf, "sharding", leaf)
        with contextlib.suppress(AttributeError, ValueError):  # An abstract mesh has none.
            return tuple(sharding._device_assignment)
    return tuple(jax.numpy.zeros(()).devices())


def _statics(
    function: Callable[..., Any], settings: Mapping[str, Any]
) -> tuple[frozenset[int], frozenset[str]]:
    """Returns the places and the names of static arguments, as jax.jit finds them."""
    from jax._src import api_util

    wanted = settings.get("static_argnums"), settings.get("static_argnames")
    if wanted == (None, None):
        return frozenset(), frozenset()
    places, names = api_util.infer_argnums_and_argnames(inspect.signature(function), *wanted)
    return frozenset(places), frozenset(names)
