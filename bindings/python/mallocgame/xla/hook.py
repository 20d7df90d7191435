"""Hands executables of ours to compiles of JAX.

JAX compiles by one function, backend_compile_and_load, which is replaced here, in this process
only. A compile that carries the option MARK gets the executable that the option names: it is
deserialized in place of being compiled, as JAX does with what its persistent cache holds. Every
other compile goes to JAX's own function as it is.

A compile that is refused its executable raises a HookError. Once a program has had its executable,
no compile of it may fail any more, and a refusal compiles it as XLA does.
"""

import copy
import dataclasses
import functools
import hashlib
import inspect
import logging
from collections.abc import Callable
from typing import Any

from mallocgame.errors import MallocGameError
from mallocgame.xla.modules import field_of, varint_of
from mallocgame.xla.signatures import Signature, parsed, signature_of_hlo, signature_of_stablehlo

_LOG = logging.getLogger("mallocgame.xla")

MARK = "mallocgame_executable"  # the compiler option whose value names an Offer
_PARAMETERS = ("backend", "module", "executable_devices", "options", "host_callbacks")


class HookError(MallocGameError):
    """An executable that a compile can't have, and why."""


@dataclasses.dataclass
class Offer:
    """An executable for compiles that carry `options`."""

    name: str  # of this executable for this program; JAX's cache knows it by the name
    executable: bytes
    signature: Signature  # of the StableHLO that it was made of
    source: str  # where it is from, for people
    settled: bool = False  # whether a refusal compiles as XLA does, in place of an error
    refusal: str = ""  # why the last compile did not get it
    taken: int = 0  # compiles that got it
    program: str = ""  # the hash of the program that got it

    @property
    def options(self) -> dict[str, str]:
        """The compiler options that ask for it."""
        return {MARK: self.name}


_offers: dict[str, Offer] = {}  # by the value of MARK


def offer(name: str, executable: bytes, signature: Signature, source: str) -> Offer:
    """Returns the process's offer of a name, which is made here if there is none. HookError."""
    _install()
    return _offers.setdefault(name, Offer(name, executable, signature, source))


@functools.cache
def _install() -> None:
    """Replaces JAX's function, once. HookError: it isn't the known one."""
    from jax._src import compiler

    original = compiler.backend_compile_and_load
    found = tuple(inspect.signature(original).parameters)
    if found != _PARAMETERS:
        raise HookError(f"jax: backend_compile_and_load takes {', '.join(found)}")
    compiler.backend_compile_and_load = functools.partial(_compile, original)


def _compile(
    original: Callable[..., Any],
    backend: Any,
    module: Any,
    executable_devices: Any,
    options: Any,
    host_callbacks: Any,
) -> Any:
    """Compiles, or answers a compile that carries MARK. HookError: it can't have what it names."""
    asked = dict(options.env_option_overrides)
    found = _offers.get(str(asked.pop(MARK, "")))
    if found is None:
        return original(backend, module, executable_devices, options, host_callbacks)
    plain = copy.deepcopy(options)
    plain.env_option_overrides = list(asked.items())
    try:
        digest = _checked(found, module)
        loaded = _load(found, backend, executable_devices, plain)
    except Exception as error:  # JAX can still compile.
        ours = isinstance(error, MallocGameError)
        found.refusal = str(error) if ours else f"{type(error).__name__}: {error}"
        if not found.settled:
            raise HookError(found.refusal) from None
        _LOG.warning("compiled as XLA does, not as %s: %s", found.source, found.refusal)
        return original(backend, module, executable_devices, plain, host_callbacks)
    found.refusal, found.program, found.taken = "", digest, found.taken + 1
    return loaded


def _checked(found: Offer, module: Any) -> str:
    """Returns the hash of the program that is being compiled, without the places in source files.

    HookError: the executable is for another program.
    """
    if unlike := found.signature.unlike(signature_of_stablehlo(module)):
        raise HookError(f"the program being compiled has another signature; {unlike}")
    text: str = module.operation.get_asm(enable_debug_info=False)
    digest = hashlib.sha256(text.encode()).hexdigest()
    if found.settled and found.program != digest:
        raise HookError("the program being compiled is another one than before")
    return digest


def _load(found: Offer, backend: Any, devices: Any, options: Any) -> Any:
    """Returns a loaded executable. HookError: it can't be loaded, or isn't of its signature."""
    from jax.errors import JaxRuntimeError
    from jaxlib import _jax

    if isinstance(backend, _jax.CompileOnlyPyClient):
        raise HookError("it is compiled ahead of time, and an executable is for a device")
    about = _about_results(found.signature)
    try:
        loaded = backend.deserialize_executable(
            varint_of(len(about)) + about + found.executable, devices, options
        )
    except JaxRuntimeError as error:
        raise HookError(f"the executable can't be loaded: {str(error).splitlines()[0]}") from None
    (module,) = loaded.hlo_modules()
    signature = signature_of_hlo(module.as_serialized_hlo_module_proto(), len(devices))
    if refusal := found.signature.refuses(signature):
        raise HookError(f"the executable has another signature; {refusal}")
    return loaded


def _about_results(signature: Signature) -> bytes:
    """Returns the message that JAX writes before the compiler's bytes of an executable.

    It is a SerializedXlaExecutableMetadata, of which only what it says of results is needed.
    """
    from jaxlib.xla_client import PrimitiveType

    message = b""
    for kind, sizes in map(parsed, signature.outputs):
        shape = field_of(1, b"".join(map(varint_of, sizes)))
        element = b"\x08" + varint_of(getattr(PrimitiveType, kind.upper()).value)
        result = (
            field_of(1, shape) + field_of(2, element) + field_of(4, b"device") + field_of(6, shape)
        )
        message += field_of(5, result)
    return message
