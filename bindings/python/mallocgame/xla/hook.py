"""Hands executables of ours to compiles of a PJRT plugin that this process has loaded.

JAX compiles through two functions of the plugin's table, the struct PJRT_Api. Here they are
replaced, in this process only. A compile that carries the option MARK gets the executable that the
option names: it is deserialized in place of being compiled. Every other compile goes to the plugin
as it is.

A compile that is refused its executable goes on to the plugin with the option still in it. The
plugin refuses that too, so that JAX raises. Once a program has had its executable, no compile of it
may fail any more, and a refusal compiles it as the plugin does.
"""

import _thread
import atexit
import ctypes
import dataclasses
import functools
import hashlib
import logging
import os
import threading
from collections.abc import Callable
from typing import Any

from mallocgame.errors import InvalidInputError, MallocGameError
from mallocgame.xla.signatures import Signature, signature_of_hlo, signature_of_stablehlo

_LOG = logging.getLogger("mallocgame.xla")

MARK = "mallocgame_executable"  # the compiler option whose value names an Offer

# The table is a header of _HEADER bytes, and then a pointer for each function. The order is the
# same from version 0.69 of the interface to 0.116, because versions only append.
_HEADER = 40
_MAJOR = 0
_SLOTS = {
    "PJRT_Error_Destroy": 0,
    "PJRT_Error_Message": 1,
    "PJRT_Client_Compile": 20,
    "PJRT_Executable_Destroy": 40,
    "PJRT_Executable_NumPartitions": 43,
    "PJRT_Executable_OptimizedProgram": 48,
    "PJRT_LoadedExecutable_Destroy": 50,
    "PJRT_LoadedExecutable_GetExecutable": 51,
    "PJRT_Executable_DeserializeAndLoad": 56,
    "PJRT_Compile": 89,
}
_Function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_INTERRUPT_SECONDS = 0.05  # by then a callback has returned


class HookError(MallocGameError):
    """A plugin whose table isn't the known one. Nothing was replaced."""


@dataclasses.dataclass
class Offer:
    """An executable for compiles that carry `options`."""

    name: str  # of this executable for this program; JAX's cache knows it by the name
    executable: bytes
    signature: Signature  # of the StableHLO that it was made of
    source: str  # where it is from, for people
    settled: bool = False  # whether a refusal compiles as the plugin does, in place of an error
    refusal: str = ""  # why the last compile did not get it
    taken: int = 0  # compiles that got it
    program: str = ""  # the hash of the program that got it

    @property
    def options(self) -> dict[str, str]:
        """The compiler options that ask for it."""
        return {MARK: self.name}


_offers: dict[str, Offer] = {}  # by the value of MARK
_hooks: dict[int, "Hook"] = {}  # by the address of the table
_lock = threading.Lock()


def offer(name: str, executable: bytes, signature: Signature, source: str) -> Offer:
    """Returns the process's offer of a name, which is made here if there is none."""
    return _offers.setdefault(name, Offer(name, executable, signature, source))


def install(library: str | os.PathLike[str]) -> "Hook":
    """Replaces the functions of a plugin, once, and returns the hook.

    library: the plugin's file, which JAX loads or has loaded.

    HookError: it isn't a plugin with the known table.
    """
    with _lock:
        address = _table(os.fspath(library))
        if address not in _hooks:
            hook = Hook(address)
            hook.install()
            _hooks[address] = hook
        return _hooks[address]


class Hook:
    """The replaced functions of one plugin."""

    def __init__(self, address: int) -> None:
        self._address = address
        self._original = {name: _Function(self._slot(name).value or 0) for name in _SLOTS}
        # They live as long as the process: another thread may be inside of one.
        self._own = {name: _Function(functools.partial(_answer, self, name)) for name in _STRUCTS}

    def install(self) -> None:
        """Replaces the functions. HookError: the table can't be written."""
        if not _is_writable(self._address, _HEADER + 8 * (max(_SLOTS.values()) + 1)):
            raise HookError("PJRT plugin: found its table in memory that is read only")
        for name, function in self._own.items():
            self._slot(name).value = _address_of(function)
        atexit.register(self.uninstall)

    def uninstall(self) -> None:
        """Puts the plugin's own functions back, where nobody has replaced ours."""
        with _lock:
            for name, function in self._own.items():
                if self._slot(name).value == _address_of(function):
                    self._slot(name).value = _address_of(self._original[name])
            _hooks.pop(self._address, None)
        atexit.unregister(self.uninstall)

    def call(self, name: str, arguments: ctypes.Structure) -> int | None:
        """Calls a function of the plugin. Returns None, or an error that the caller destroys."""
        error: int | None = self._original[name](ctypes.addressof(arguments))
        return error

    def checked(self, name: str, arguments: ctypes.Structure) -> None:
        """Calls a function of the plugin. HookError: it gave an error."""
        error = self.call(name, arguments)
        if error:
            raise HookError(f"{name}: {self._text(error)}")

    def _text(self, error: int) -> str:
        """Returns what a PJRT_Error says, and destroys it."""
        said = _ErrorMessage(error=error)
        self.call("PJRT_Error_Message", said)
        text = ctypes.string_at(said.message, said.message_size).decode(errors="replace")
        self.call("PJRT_Error_Destroy", _OnePointer(it=error))
        return text.strip().partition("\n")[0]

    def _slot(self, name: str) -> ctypes.c_void_p:
        return ctypes.c_void_p.from_address(self._address + _HEADER + 8 * _SLOTS[name])


def _answer(hook: Hook, name: str, address: int) -> int | None:
    """What stands in the table: answers what carries MARK, and passes on everything else.

    Whatever goes wrong here, the plugin does what it was asked.
    """
    arguments = _STRUCTS[name].from_address(address)
    try:
        arguments.result = None
        options = ctypes.string_at(arguments.options, arguments.options_size)
        if MARK.encode() in options:
            return _hand_over(hook, name, arguments, options)
        return hook.call(name, arguments)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):  # It may not pass through the plugin's frames.
            threading.Timer(_INTERRUPT_SECONDS, _thread.interrupt_main).start()
        # An error of the plugin must not get lost: without one JAX takes the result.
        return None if arguments.result else hook.call(name, arguments)


def _parted(options: bytes) -> tuple[str, bytes]:
    """Returns the value of MARK in serialized compile options, and the options without it."""
    from jaxlib.xla_client import CompileOptions

    settings = CompileOptions.ParseFromString(options)
    asked = dict(settings.env_option_overrides)
    mark = str(asked.pop(MARK, ""))
    settings.env_option_overrides = list(asked.items())
    return mark, settings.SerializeAsString()


def _hand_over(hook: Hook, name: str, arguments: Any, options: bytes) -> int | None:
    """Answers a compile that carries MARK."""
    mark, plain = _parted(options)
    found = _offers.get(mark)
    if found is None:
        return hook.call(name, arguments)
    try:
        if name != "PJRT_Client_Compile":
            raise HookError("it is compiled ahead of time, and an executable is for a device")
        program = _program_of(arguments.program.contents)
        _check_program(found, program)
        arguments.result = _load(hook, arguments.client, found, plain)
    except Exception as error:  # The plugin can still compile.
        ours = isinstance(error, MallocGameError)
        found.refusal = str(error) if ours else f"{type(error).__name__}: {error}"
        if found.settled:
            _LOG.warning("compiled as XLA does, not as %s: %s", found.source, found.refusal)
            return _call_with(hook, name, arguments, plain)
        return hook.call(name, arguments)
    found.refusal, found.program, found.taken = "", program.digest, found.taken + 1
    return None


def _call_with(hook: Hook, name: str, arguments: Any, options: bytes) -> int | None:
    """Calls the plugin with other options."""
    given = arguments.options, arguments.options_size
    arguments.options, arguments.options_size = _address_of(options), len(options)
    try:
        return hook.call(name, arguments)
    finally:
        arguments.options, arguments.options_size = given


@dataclasses.dataclass(frozen=True)
class _Stablehlo:
    """A program that JAX hands to the plugin."""

    digest: str  # without the places in source files
    signature: Signature


def _program_of(program: "_Program") -> _Stablehlo:
    """Reads the program that is being compiled. HookError, InvalidInputError."""
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    form = ctypes.string_at(program.format, program.format_size)
    if form != b"mlir":
        raise HookError(f"format of the program: found {form.decode()}, allowed: mlir")
    code = ctypes.string_at(program.code, program.code_size)
    with mlir.make_ir_context() as context:
        try:
            module: Any = stablehlo.deserialize_portable_artifact(context, code)
        except (ir.MLIRError, ValueError) as error:
            raise HookError(f"program: {str(error).partition(chr(10))[0]}") from None
        text: str = module.operation.get_asm(enable_debug_info=False)
        digest = hashlib.sha256(text.encode()).hexdigest()
        return _Stablehlo(digest, signature_of_stablehlo(module))


def _check_program(found: Offer, program: _Stablehlo) -> None:
    """HookError: the executable is for another program."""
    if unlike := found.signature.unlike(program.signature):
        raise HookError(f"the program being compiled has another signature; {unlike}")
    if found.settled and found.program != program.digest:
        raise HookError("the program being compiled is another one than before")


def _load(hook: Hook, client: int, found: Offer, options: bytes) -> int:
    """Returns a loaded executable. HookError: it can't be loaded, or isn't of its signature."""
    loading = _DeserializeAndLoad(
        client=client,
        executable=_address_of(found.executable),
        executable_size=len(found.executable),
        options=_address_of(options),
        options_size=len(options),
    )
    hook.checked("PJRT_Executable_DeserializeAndLoad", loading)
    loaded: int = loading.result
    try:
        if refusal := found.signature.refuses(_signature(hook, loaded)):
            raise HookError(f"the executable has another signature; {refusal}")
    except BaseException:
        hook.call("PJRT_LoadedExecutable_Destroy", _OnePointer(it=loaded))
        raise
    return loaded


def _signature(hook: Hook, loaded: int) -> Signature:
    """Returns the signature of a loaded executable. HookError, InvalidInputError."""
    asking = _TwoPointers(it=loaded)
    hook.checked("PJRT_LoadedExecutable_GetExecutable", asking)
    executable = asking.other
    try:
        counting = _TwoPointers(it=executable)
        hook.checked("PJRT_Executable_NumPartitions", counting)
        program = _Program()
        reading = _OptimizedProgram(executable=executable, program=ctypes.pointer(program))
        hook.checked("PJRT_Executable_OptimizedProgram", reading)  # says how long it is
        code = ctypes.create_string_buffer(program.code_size)
        program.code = ctypes.addressof(code)
        hook.checked("PJRT_Executable_OptimizedProgram", reading)
        form = ctypes.string_at(program.format, program.format_size)
    finally:
        hook.call("PJRT_Executable_Destroy", _OnePointer(it=executable))
    module = code.raw
    if form == b"hlo_with_config":
        module = _first_field(module)
    elif form != b"hlo":
        raise HookError(f"format of the executable's HLO: found {form.decode()}, allowed: hlo")
    return signature_of_hlo(module, counting.other or 1)


def _first_field(message: bytes) -> bytes:
    from mallocgame.xla.modules import wire_fields

    for number, body in wire_fields(message):
        if number == 1 and isinstance(body, bytes):
            return body
    raise InvalidInputError("HLO module with its config: found no module")


def _table(library: str) -> int:
    """Returns the address of a plugin's PJRT_Api. HookError: it isn't the known one."""
    try:
        plugin = ctypes.CDLL(library)
        get: Callable[[], int | None] = plugin.GetPjrtApi
    except (OSError, AttributeError) as error:
        raise HookError(f"PJRT plugin {library}: {error}") from None
    get.restype = ctypes.c_void_p  # type: ignore[attr-defined]
    address = get()
    if not address:
        raise HookError(f"PJRT plugin {library}: found no table")
    size = ctypes.c_size_t.from_address(address).value
    needed = _HEADER + 8 * (max(_SLOTS.values()) + 1)
    if size < needed:
        raise HookError(f"PJRT plugin {library}: found {size} bytes, allowed: {needed} and more")
    major = ctypes.c_int.from_address(address + _HEADER - 8).value
    if major != _MAJOR:
        raise HookError(f"PJRT plugin {library}: found version {major}, allowed: {_MAJOR}")
    if address not in _hooks:
        home = _file_of(_address_of(get))
        for name, slot in _SLOTS.items():
            function = ctypes.c_void_p.from_address(address + _HEADER + 8 * slot).value
            if not function or _file_of(function) != home:
                raise HookError(f"PJRT plugin {library}: found a {name} that isn't the plugin's")
    return address


class _DlInfo(ctypes.Structure):
    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("symbol_address", ctypes.c_void_p),
    )


def _file_of(function: int) -> bytes | None:
    """Returns the library that holds a function."""
    found = _DlInfo()
    dladdr = ctypes.CDLL(None).dladdr
    dladdr.argtypes = ctypes.c_void_p, ctypes.c_void_p
    return found.file if dladdr(function, ctypes.addressof(found)) else None


def _is_writable(address: int, size: int) -> bool:
    """Whether this process may write all of these bytes."""
    at = address
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            span, access = line.split()[:2]
            begin, end = (int(bound, 16) for bound in span.split("-"))
            if begin <= at < end and "w" in access:
                at = end
            if at >= address + size:
                return True
    return False


def _address_of(it: Any) -> int:
    """Returns the address of a function, or of bytes that the caller keeps."""
    what = ctypes.c_char_p(it) if isinstance(it, bytes) else it
    return ctypes.cast(what, ctypes.c_void_p).value or 0


class _Arguments(ctypes.Structure):
    """The arguments of a function of the table; each struct begins with its own size."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.struct_size = ctypes.sizeof(self)


_HEAD: tuple[Any, ...] = (("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p))


class _Program(_Arguments):
    _fields_ = (
        *_HEAD,
        ("code", ctypes.c_void_p),
        ("code_size", ctypes.c_size_t),
        ("format", ctypes.c_void_p),
        ("format_size", ctypes.c_size_t),
    )


class _ClientCompile(_Arguments):
    _fields_ = (
        *_HEAD,
        ("client", ctypes.c_void_p),
        ("program", ctypes.POINTER(_Program)),
        ("options", ctypes.c_void_p),
        ("options_size", ctypes.c_size_t),
        ("result", ctypes.c_void_p),
    )


class _Compile(_Arguments):
    _fields_ = (
        *_HEAD,
        ("topology", ctypes.c_void_p),
        ("program", ctypes.POINTER(_Program)),
        ("options", ctypes.c_void_p),
        ("options_size", ctypes.c_size_t),
        ("client", ctypes.c_void_p),
        ("result", ctypes.c_void_p),
    )


class _DeserializeAndLoad(_Arguments):
    _fields_ = (
        *_HEAD,
        ("client", ctypes.c_void_p),
        ("executable", ctypes.c_void_p),
        ("executable_size", ctypes.c_size_t),
        ("result", ctypes.c_void_p),
        ("options", ctypes.c_void_p),
        ("options_size", ctypes.c_size_t),
    )


class _OptimizedProgram(_Arguments):
    _fields_ = (*_HEAD, ("executable", ctypes.c_void_p), ("program", ctypes.POINTER(_Program)))


class _ErrorMessage(_Arguments):
    _fields_ = (
        *_HEAD,
        ("error", ctypes.c_void_p),
        ("message", ctypes.c_void_p),
        ("message_size", ctypes.c_size_t),
    )


class _OnePointer(_Arguments):
    """The arguments of a function that takes one thing."""

    _fields_ = (*_HEAD, ("it", ctypes.c_void_p))


class _TwoPointers(_Arguments):
    """The arguments of a function that takes one thing and gives another thing or a number."""

    _fields_ = (*_HEAD, ("it", ctypes.c_void_p), ("other", ctypes.c_void_p))


_STRUCTS = {"PJRT_Client_Compile": _ClientCompile, "PJRT_Compile": _Compile}
