"""What the phases of a compile take and give (Compiler.run_phase)."""

import dataclasses

from mallocgame._core import parse_partial_program, serialize_partial_program
from mallocgame.xla.stablehlo import portable_artifact


@dataclasses.dataclass(frozen=True)
class PartialProgram:
    """XLA's PjRtPartialProgramProto.

    compressed: whether the program is compressed in bytes: in those that it was read from, and in
    those that to_bytes() makes. Versions of libtpu differ in which they take.
    """

    program: bytes  # decompressed
    compressed: bool = False
    format: str = ""
    generating_phase: str = ""
    next_phases: tuple[str, ...] = ()  # that take it
    version: str = ""
    name: str = ""  # "opt_hlo", "buffer_assignment" ...

    @classmethod
    def from_bytes(cls, data: bytes) -> "PartialProgram":
        """Reads one that a phase gave. InvalidInputError."""
        return cls(*parse_partial_program(data))

    def to_bytes(self) -> bytes:
        """Returns it as a phase takes it."""
        return serialize_partial_program(
            self.program,
            self.compressed,
            self.format,
            self.generating_phase,
            self.next_phases,
            self.version,
            self.name,
        )


def of_stablehlo(module: str) -> PartialProgram:
    """Returns what phase 1 takes: a StableHLO module. ValueError: it is no StableHLO text."""
    return PartialProgram(
        portable_artifact(module), format="mlir", next_phases=("phase1_hlo_opts",)
    )
