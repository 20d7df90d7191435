"""The bridge to the real TPU compiler.

It captures a JAX program, finds a better plan, and has XLA:TPU carry it out. It needs JAX and
libtpu (the extra `xla`) and no TPU. All latencies are the compiler's static estimates with
simulated copies, not measurements on a chip.

    import mallocgame.xla as mgx
    mgx.tune(function, *shapes, target="tpu_v5e", seconds=600, executables="tuned")
    faster = mgx.jit(function, executables="tuned")  # in place of jax.jit(function)
"""

from mallocgame._moved import moved
from mallocgame.xla.captures import Capture, capture, capture_dump, capture_module, load_capture
from mallocgame.xla.compiler import Compiler
from mallocgame.xla.compiler_errors import CompilerError
from mallocgame.xla.dumps import tune_dumps
from mallocgame.xla.jitting import Jitted, NotTunedWarning, jit
from mallocgame.xla.lowering import lower
from mallocgame.xla.measuring import Measured, measure
from mallocgame.xla.targets import TARGETS, Target, find_target
from mallocgame.xla.tuned_folders import TunedFolder
from mallocgame.xla.tuning import Tuned, apply, tune, tune_capture, what_is_left
from mallocgame.xla.verifying import Verified, verify

_MOVED = {
    "claims": "PRICED WHOLE Calibrated",
    "compiler": "DEFAULT_CACHE",
    "compiler_errors": "CompilerDeadlineError CompilerEndedError CompilerLimitError "
    "CompilerRefusedError",
    "dumps": "TunedModule",
    "emitting": "Emitter PlanRefusedError Written",
    "modules": "Compiled",
    "phases": "Crew Lowered Phases Scheduled",
    "tuned_folders": "Key TunedProgram",
    "tuning": "NOTE Left",
    "verifying": "Check",
}


def __getattr__(name: str) -> object:
    return moved(__name__, name, _MOVED)


__all__ = [
    "TARGETS",
    "Capture",
    "Compiler",
    "CompilerError",
    "Jitted",
    "Measured",
    "NotTunedWarning",
    "Target",
    "Tuned",
    "TunedFolder",
    "Verified",
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
