"""What XLA:TPU says in English, read in this one place.

Whoever acts on a refusal of the compiler reads the fields of its error. The samples in
tests/python/compiler_messages.json are of the compiler itself (libtpu 0.0.51).
"""

import dataclasses
import re

CAPACITY, MAIN_MEMORY, SCOPED, OTHER = "capacity", "main-memory", "scoped", "compiler"

# Sizes are rounded to hundredths of KiB, MiB ...; what is kept free beside them.
ROUNDING_BYTES = 32768

_UNITS = " KMGT"
_SIZE = r"([\d.]+)([KMGT]?)"
_USED = re.compile(rf"memory space (\w+)\. Used {_SIZE} of {_SIZE}")
_HBM = re.compile(rf"required for [\w ]+ \({_SIZE}\) exceeds available HBM \({_SIZE}\)")
_SCOPED = re.compile(rf"Scoped allocation with size {_SIZE} and limit {_SIZE}")
_FAST = ("vmem", "cmem")
_NAME = r"([A-Za-z_][\w.-]*)"
_INSTRUCTION = re.compile(rf"%{_NAME} = |XLA label: {_NAME} = |in HLO :: {_NAME}")
_SOURCES = "=== Source Location Trace"
_CHECK = re.compile(r"Check failed|^F\d{4} ")
# Lines that tell nothing of why a process has ended.
_NOISE = ("WARNING", "I0000", "W0000", "***", "@", "#", "PC:", "[", "https:")
_SIGNALS = " RAW: "  # of libtpu's handler of signals
_LONGEST = 500  # characters of a line


@dataclasses.dataclass(frozen=True)
class Said:
    """A sentence of the compiler, and what it is about."""

    line: str  # for people
    rule: str = OTHER
    instructions: tuple[str, ...] = ()  # that it names
    used_bytes: int = 0  # of the memory that is too small; 0: it says no such
    limit_bytes: int = 0  # that there are of it

    @property
    def exceeded_bytes(self) -> int:
        """By how many bytes a memory is too small, at most; 0: none is."""
        if self.used_bytes == 0:
            return 0
        return max(0, self.used_bytes - self.limit_bytes) + ROUNDING_BYTES


def read_refusal(status: str) -> Said:
    """Reads the message of a status with which a compile, or a phase of it, was refused."""
    return _read(" ".join(status.split(_SOURCES)[0].split()))


def read_last_words(text: str) -> Said:
    """Reads what the compiler's process has written before it ended: a failed check, if any."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if not line.startswith(_NOISE) and _SIGNALS not in line]
    found = next((line for line in lines if _CHECK.search(line)), errors[-1] if errors else "")
    return _read(found[:_LONGEST])


def _read(line: str) -> Said:
    rule, used, limit = OTHER, 0, 0
    if found := _USED.search(line):
        rule = CAPACITY if found[1] in _FAST else MAIN_MEMORY if found[1] == "hbm" else OTHER
        used, limit = _bytes(*found.group(2, 3)), _bytes(*found.group(4, 5))
    elif found := _HBM.search(line):
        rule = MAIN_MEMORY
        used, limit = _bytes(*found.group(1, 2)), _bytes(*found.group(3, 4))
    elif found := _SCOPED.search(line):
        rule = SCOPED
        used, limit = _bytes(*found.group(1, 2)), _bytes(*found.group(3, 4))
    names = (name for groups in _INSTRUCTION.findall(line) for name in groups if name)
    return Said(line, rule, tuple(dict.fromkeys(names)), used, limit)


def _bytes(number: str, unit: str) -> int:
    return int(float(number) * 1024 ** _UNITS.index(unit or " "))
