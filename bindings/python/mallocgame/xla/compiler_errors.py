"""The errors of XLA:TPU's compiler."""

from mallocgame.errors import MallocGameError
from mallocgame.xla.compiler_messages import Said


class CompilerError(MallocGameError):
    """The compiler gave no module: it refused, ended, or went over a limit."""


class CompilerRefusedError(CompilerError):
    """The compiler says why it won't compile the module with these options.

    The rules are those of mallocgame.xla.compiler_messages, which reads what the compiler says.
    """

    used_bytes: int = 0  # of the memory that is too small; 0: none is
    limit_bytes: int = 0  # that there are of it

    @classmethod
    def saying(cls, said: Said) -> "CompilerRefusedError":
        """Returns the error with all that the compiler has said."""
        error = cls(said.line)
        error.about(said.rule, said.instructions, exceeded_bytes=said.exceeded_bytes)
        error.used_bytes, error.limit_bytes = said.used_bytes, said.limit_bytes
        return error


class CompilerEndedError(CompilerError):
    """The compiler's process ended, as XLA does where a check of its own fails."""

    killed = False  # whether another process ended it, so that the same compile may succeed


class CompilerLimitError(CompilerError):
    """The compiler took longer than it may."""


class CompilerDeadlineError(CompilerLimitError):
    """The time of the whole work was over (Compiler.until)."""
