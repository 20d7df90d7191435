"""The forms in which people have modules, found out by looking.

A module is bytes or a path: a protocol buffer, which the core reads in all its forms, or HLO text,
which jaxlib's parser makes one of. Each may be gzip.
"""

import importlib.util
import os
import re
import subprocess
import sys
import zlib

from mallocgame import _arguments
from mallocgame._core import read_file
from mallocgame.errors import InvalidInputError, how_to_install

Module = bytes | str | os.PathLike[str]  # the content, or the path of a file

_LARGEST_BYTES = 1 << 30
_PARSER = os.path.join(os.path.dirname(__file__), "hlo_text.py")

_GZIP = b"\x1f\x8b"
_COMPRESSED = {b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ\0": "xz", b"BZh": "bzip2", b"PK\3\4": "zip"}
_ENCODINGS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}

# How a text begins, behind blanks and comments.
_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_HLO = re.compile(r"HloModule\b")
_COMPUTATION = re.compile(r"ENTRY\b|%?[\w.-]+ (?:\(.*\) -> .*)?\{\s*$", re.MULTILINE)
_MLIR = re.compile(r"""#\w+ = |module\b|builtin\.module|"builtin\.module"|func\.func|!\w+ = """)
_TEXT_PROTO = re.compile(r"(?:hlo_)?module\s*\{|hlo\s*\{|name\s*:")
_CAPTURE = "`mallocgame xla capture` has the compiler make a module of a JAX function"


def unpacked(content: Module, what: str) -> bytes:
    """Returns content, or that of a path, without gzip.

    InvalidInputError: damaged gzip, or another compression; messages call it `what`.
    MissingFileError.
    """
    if not isinstance(content, bytes):
        content = _arguments.path(what, content, "bytes or a path")
        if os.path.isdir(content):
            raise InvalidInputError(
                f"{what}: {os.fspath(content)} is a folder; `mallocgame xla capture` takes one "
                "that XLA dumped"
            )
        content = read_file(content)
    while content.startswith(_GZIP):  # Tools that compress what is compressed already are about.
        content = _gunzip(content, what)
    for begin, name in _COMPRESSED.items():
        if content.startswith(begin):
            raise InvalidInputError(f"{what}: compressed with {name}; gzip or nothing is allowed")
    return content


def module_bytes(module: Module, what: str = "module") -> bytes:
    """Returns a module as the bytes of a protocol buffer.

    InvalidInputError: it is text that holds no HLO module, or jaxlib isn't installed, which HLO
    text needs; messages call the module `what`. MissingFileError.
    """
    data = unpacked(module, what)
    if data.startswith(b"ML\xefR"):
        raise InvalidInputError(f"{what}: found MLIR bytecode, wanted is HLO; {_CAPTURE}")
    text = _text_of(data)
    if not text:
        return data  # The core says what is wrong with nothing.
    begin = _BLANK.match(text)
    text = text[begin.end() :] if begin else text
    if _HLO.match(text):
        return _parsed(text, what)
    if _TEXT_PROTO.match(text) or not _COMPUTATION.match(text):
        raise InvalidInputError(f"{what}: {_other_text(text)}")
    # People post modules without their first line.
    return _parsed(f"HloModule module\n\n{text}", what)


def is_text(module: bytes) -> bool:
    """Whether unpacked bytes are text."""
    return _text_of(module) is not None


def _gunzip(data: bytes, what: str) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacker.decompress(data, _LARGEST_BYTES)
    except zlib.error as error:
        raise InvalidInputError(f"{what}: damaged gzip ({error})") from None
    if not unpacker.eof:
        raise InvalidInputError(
            f"{what}: gzip that is cut short or unpacks to over {_LARGEST_BYTES} bytes"
        )
    return unpacked


def _text_of(data: bytes) -> str | None:
    """Returns what is text, by its first bytes; None: it is not."""
    encoding = next((one for mark, one in _ENCODINGS.items() if data.startswith(mark)), "utf-8")
    begin = data[:4096]
    if encoding == "utf-8" and any(byte < 32 and byte not in b"\t\n\r\f" for byte in begin):
        return None  # A message begins with its fields' numbers and lengths.
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _parsed(text: str, what: str) -> bytes:
    if importlib.util.find_spec("jaxlib") is None:
        raise InvalidInputError(
            f"{what}: found HLO text, which jaxlib reads ({how_to_install('xla')}); or have XLA "
            "dump protocol buffers (--xla_dump_hlo_as_proto)"
        )
    done = subprocess.run(
        [sys.executable, _PARSER], input=text.encode(), capture_output=True, check=False
    )
    if done.returncode == 0:
        return done.stdout
    said = done.stderr.decode(errors="replace").split()
    if done.returncode != 1:
        said = [*said[-40:], f"(jaxlib's parser ended with status {done.returncode})"]
    raise InvalidInputError(f"{what}: no HLO text that jaxlib reads: {' '.join(said)[:1000]}")


def _other_text(text: str) -> str:
    if not text:
        return "found no text but blanks and comments"
    if _MLIR.match(text):
        return f"found MLIR text, such as StableHLO, wanted is HLO; {_CAPTURE}"
    if _TEXT_PROTO.match(text):
        return (
            "found a protocol buffer as text; have XLA dump it as bytes (--xla_dump_hlo_as_proto)"
        )
    first = text.splitlines()[0][:60]
    return f"found text that begins with '{first}', wanted is HLO text, which begins with HloModule"
