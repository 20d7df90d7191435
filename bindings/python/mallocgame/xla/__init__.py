"""The bridge to the real TPU compiler.

It captures a JAX program, finds a better plan, and has XLA:TPU carry it out. It needs JAX and
libtpu (the extra `xla`) and no TPU. All latencies are the compiler's static estimates with
simulated copies, not measurements on a chip.

    import mallocgame.xla as mgx
    mgx.tune(function, *shapes, target="tpu_v5e", seconds=600, options="tuned")
    faster = mgx.jit(function, options="tuned")  # in place of jax.jit(function)
"""

from mallocgame.errors import MissingExtraError
from mallocgame.xla.captures import Capture, capture, capture_dump, capture_module, load_capture
from mallocgame.xla.claims import PRICED, WHOLE, Calibrated
from mallocgame.xla.compiler import (
    DEFAULT_CACHE,
    Compiler,
    CompilerDeadlineError,
    CompilerEndedError,
    CompilerError,
    CompilerLimitError,
    CompilerRefusedError,
)
from mallocgame.xla.dumps import TunedModule, tune_dumps
from mallocgame.xla.emitting import Emitter, PlanRefusedError, Written
from mallocgame.xla.jitting import Jitted, NotTunedWarning, jit
from mallocgame.xla.lowering import lower
from mallocgame.xla.measuring import Measured, measure
from mallocgame.xla.modules import Compiled
from mallocgame.xla.phases import Crew, Lowered, Phases, Scheduled
from mallocgame.xla.targets import TARGETS, Target, find_target
from mallocgame.xla.tuned_folders import Key, TunedFolder, TunedProgram
from mallocgame.xla.tuning import NOTE, Left, Tuned, apply, tune, tune_capture, what_is_left
from mallocgame.xla.verifying import Check, Verified, verify

__all__ = [
    "DEFAULT_CACHE",
    "NOTE",
    "PRICED",
    "TARGETS",
    "WHOLE",
    "Calibrated",
    "Capture",
    "Check",
    "Compiled",
    "Compiler",
    "CompilerDeadlineError",
    "CompilerEndedError",
    "CompilerError",
    "CompilerLimitError",
    "CompilerRefusedError",
    "Crew",
    "Emitter",
    "Jitted",
    "Key",
    "Left",
    "Lowered",
    "Measured",
    "MissingExtraError",
    "NotTunedWarning",
    "Phases",
    "PlanRefusedError",
    "Scheduled",
    "Target",
    "Tuned",
    "TunedFolder",
    "TunedModule",
    "TunedProgram",
    "Verified",
    "Written",
    "apply",
    "capture",
    "capture_dump",
    "capture_module",
    "find_target",
    "jit",
    "load_capture",
    "lower",
    "measure",
    "tune",
    "tune_capture",
    "tune_dumps",
    "verify",
    "what_is_left",
]
