"""The bridge to the real TPU compiler.

It captures a JAX program, finds a better plan, and has XLA:TPU carry it out. It needs JAX and
libtpu (the extra `xla`) and no TPU. All latencies are the compiler's static estimates with
simulated copies, not measurements on a chip.

    import mallocgame.xla as mgx
    mgx.tune(function, *shapes, target="tpu_v5e", seconds=600, options="tuned")
    faster = mgx.jit(function, options="tuned")  # in place of jax.jit(function)
"""

from mallocgame.errors import MissingExtraError
from mallocgame.xla.abilities import Abilities
from mallocgame.xla.captures import Capture, capture, capture_dump, capture_module, load_capture
from mallocgame.xla.claims import PRICED, WHOLE
from mallocgame.xla.compiler import (
    DEFAULT_CACHE,
    Compiler,
    CompilerEndedError,
    CompilerError,
    CompilerLimitError,
    CompilerRefusedError,
    MissingOptionError,
)
from mallocgame.xla.dumps import TunedModule, tune_dumps
from mallocgame.xla.jitting import Jitted, NotTunedWarning, jit
from mallocgame.xla.lowering import lower
from mallocgame.xla.measuring import Measured, measure
from mallocgame.xla.modules import Compiled
from mallocgame.xla.negotiate import NOTE, CarriedOut, Outcome, Refusal, carry_out
from mallocgame.xla.option_files import load_options, options, save_options
from mallocgame.xla.profiling import Lesson, profile
from mallocgame.xla.targets import TARGETS, Target, find_target
from mallocgame.xla.tuned_folders import Key, TunedFolder, TunedProgram
from mallocgame.xla.tuning import Tuned, apply, tune, tune_capture
from mallocgame.xla.verifying import Check, Verified, verify

__all__ = [
    "DEFAULT_CACHE",
    "NOTE",
    "PRICED",
    "TARGETS",
    "WHOLE",
    "Abilities",
    "Capture",
    "CarriedOut",
    "Check",
    "Compiled",
    "Compiler",
    "CompilerEndedError",
    "CompilerError",
    "CompilerLimitError",
    "CompilerRefusedError",
    "Jitted",
    "Key",
    "Lesson",
    "Measured",
    "MissingExtraError",
    "MissingOptionError",
    "NotTunedWarning",
    "Outcome",
    "Refusal",
    "Target",
    "Tuned",
    "TunedFolder",
    "TunedModule",
    "TunedProgram",
    "Verified",
    "apply",
    "capture",
    "capture_dump",
    "capture_module",
    "carry_out",
    "find_target",
    "jit",
    "load_capture",
    "load_options",
    "lower",
    "measure",
    "options",
    "profile",
    "save_options",
    "tune",
    "tune_capture",
    "tune_dumps",
    "verify",
]
