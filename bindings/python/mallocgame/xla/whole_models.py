"""Makes the programs of the suite `large` that aren't bundled (examples/workloads/whole.py)."""

import os

from mallocgame._core import Program
from mallocgame.programs import made_folder, save_program
from mallocgame.xla.captures import capture
from mallocgame.xla.compiler import Compiler
from mallocgame.xla.phases import Tell, quiet
from mallocgame.xla.sources import find_source
from mallocgame.xla.targets import Target, bundled_target


def target_of(name: str) -> Target:
    """Returns the target of a program, by its name."""
    return bundled_target(name.partition(".")[2])


def make(name: str, compiler: Compiler, tell: Tell = quiet) -> Program:
    """Captures a program of the suite for `compiler`, which is for its target, and keeps it.

    It is then found by its name. CompilerError, InvalidInputError, FileAccessError.
    """
    os.environ.setdefault("JAX_PLATFORMS", "cpu")  # This process only traces.
    _, function, args = find_source(name.partition(".")[0])
    target = compiler.target.title
    captured = capture(function, *args, target=target, name=name, compiler=compiler, tell=tell)
    os.makedirs(made_folder(), exist_ok=True)
    save_program(captured.program, os.path.join(made_folder(), f"{name}.mgp"))
    return captured.program
