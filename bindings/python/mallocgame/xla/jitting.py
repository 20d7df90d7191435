"""jax.jit with the options that were found for a program before."""

import contextlib
import functools
import inspect
import logging
import os
import sys
import types
import warnings
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from mallocgame.errors import InvalidInputError, MissingExtraError
from mallocgame.xla.compiler import inherited_flags, installed_versions, missing_extra
from mallocgame.xla.lowering import fingerprint, lower
from mallocgame.xla.option_folders import Kept, Key, OptionFolder
from mallocgame.xla.stablehlo import device_count
from mallocgame.xla.targets import target_of_device

_LOG = logging.getLogger("mallocgame.xla")


class NotTunedWarning(UserWarning):
    """A function is compiled as XLA does, because no options in the folder fit."""


def jit(
    function: Callable[..., Any] | None = None,
    /,
    *,
    options: str | os.PathLike[str],
    **settings: Any,
) -> Any:
    """Returns what jax.jit() returns, but compiled with options that tune() has found before.

    options: the folder that tune(options=...) or `mallocgame xla tune --options` has written. For
    each kind of arguments those options are applied that were found for the very same program, chip
    and versions of jax, jaxlib and libtpu. Else a NotTunedWarning says once why there are none, and
    XLA compiles by itself, as on a machine without a TPU.
    settings: as of jax.jit (static_argnums, donate_argnums, in_shardings ...).

    It can be a decorator: @mgx.jit(options="tuned"). Inside other transformations of JAX the
    function is a part of a larger program, whose own options count.
    """
    if function is None:
        return functools.partial(jit, options=options, **settings)
    return Jitted(function, OptionFolder(options), settings)


class Jitted:
    """A function as jit() returns it. `untuned` is what jax.jit() makes of it without options."""

    def __init__(
        self, function: Callable[..., Any], folder: OptionFolder, settings: dict[str, Any]
    ) -> None:
        try:
            import jax
        except ModuleNotFoundError as error:
            raise missing_extra(error.name or "jax") from None
        if settings.get("compiler_options"):
            raise InvalidInputError(
                "compiler_options: found some; those in the folder are given in their place"
            )
        self._jax = jax
        self._function = function
        self._name = getattr(function, "__name__", repr(function))
        self.folder = folder
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
        return Jitted, (self._function, self.folder, self._settings)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.picked(*args, **kwargs)(*args, **kwargs)

    def __get__(self, instance: Any, _: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """Returns what jax.jit(...).lower() does; its compile() applies the options."""
        return self.picked(*args, **kwargs).lower(*args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """Returns what jax.jit(...).trace() does; its lower().compile() applies the options."""
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
        """Returns the function of jax.jit, with the options that fit these arguments."""
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
        kept, why_not = find_kept(self.untuned, self.folder, args, kwargs, shardings)
        if kept is None:
            return self._as_xla_does(why_not)
        tuned = self._with(kept.options)
        try:
            tuned.lower(*args, **kwargs).compile()  # The call takes what was compiled here.
        except self._jax.errors.JaxRuntimeError as error:
            reason = str(error).splitlines()[0]
            return self._as_xla_does(f"with the options of {kept.path} XLA says: {reason}")
        _LOG.info("%s: compiled with the options of %s", self._name, kept.path)
        return tuned

    def _as_xla_does(self, why: str) -> Any:
        """Says once why no options are applied."""
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


def find_kept(
    function: Callable[..., Any],
    folder: OptionFolder,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    shardings: Any = None,
) -> tuple[Kept | None, str]:
    """Returns the options in a folder for a call of a function, else why there are none.

    shardings: those that jax.jit was told of. InvalidInputError: a file in the folder is damaged.
    """
    device = _device((args, kwargs, shardings))
    if device.platform != "tpu":
        return None, f"it is for {device.platform}, and options are for TPUs"
    target = target_of_device(device.device_kind, getattr(device, "num_cores", 1))
    if target is None:
        return None, f"no target is a {device.device_kind}"
    try:
        module = lower(function, *args, **kwargs)
        if device_count(module) != 1:
            return None, f"it is for {device_count(module)} devices"
        key = Key(fingerprint(module), target, None, installed_versions(), inherited_flags())
    except (InvalidInputError, MissingExtraError) as error:
        return None, str(error)
    kept = folder.find(key)
    return kept, "" if kept is not None else folder.why_not(key)


def _device(given: Any) -> Any:
    """Returns one of the devices that a program is compiled for."""
    import jax

    for leaf in jax.tree.leaves(given):
        sharding = getattr(leaf, "sharding", leaf)
        with contextlib.suppress(ValueError):  # An abstract mesh has no devices.
            for device in getattr(sharding, "device_set", ()):
                return device
    return next(iter(jax.numpy.zeros(()).devices()))


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
