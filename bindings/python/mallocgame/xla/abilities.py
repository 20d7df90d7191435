"""What the installed compiler can: it is asked, because versions of libtpu differ."""

import dataclasses
import re
from collections.abc import Callable, Mapping

# The versions that the extra `xla` pins, which can all of it.
VERSIONS = {"jax": "0.10.2", "jaxlib": "0.10.2", "libtpu": "0.0.51"}

# Two arrays of 4 MiB: more than the 1 MiB of main memory that the compiler is told of.
_MODULE = """module @ask {
  func.func public @main(%a: tensor<1024x1024xf32>, %b: tensor<1024x1024xf32>)
      -> tensor<1024x1024xf32> {
    %0 = stablehlo.add %a, %b : tensor<1024x1024xf32>
    return %0 : tensor<1024x1024xf32>
  }
}
"""
_NOBODY = 'overrides { hlo_position_matcher { instruction_name_regex: "nobody" } '
# The options that requests are made of, each with a value that changes nothing.
_OPTIONS = {
    "xla_tpu_msa_tensor_overrides": _NOBODY + "keep_in_default_memory {} }",
    "xla_tpu_msa_sort_order_overrides": _NOBODY + "override_options { assign_first: true } }",
    "xla_max_cross_program_prefetches": "1",
    "xla_tpu_sliced_prefetch_max_slices": "0",
}
_UNKNOWN = re.compile(r"No such compile option: '(\w+)'")
# How versions of the compiler say that a program needs more main memory than there is.
_TOO_LITTLE_MEMORY = ("CompileTimeHbmOom", "Ran out of memory on HBM")

# Compiles a module with options. Returns None, or the compiler's words if it refuses.
Ask = Callable[[str, dict[str, str]], str | None]


@dataclasses.dataclass(frozen=True)
class Abilities:
    """What a compiler can of what the bridge asks for."""

    missing: tuple[str, ...]  # options that it doesn't know
    ends_early: bool  # whether it can be had to end right after memory space assignment

    @property
    def takes_plans(self) -> bool:
        """Whether it can be asked for a plan."""
        return not self.missing

    def sentence(self, installed: Mapping[str, str]) -> str | None:
        """Says what is missing and what mends it; None: nothing is."""
        if not self.missing and self.ends_early:
            return None
        lacks = (
            f"has no option {' and no '.join(self.missing)}, by which plans are asked for"
            if self.missing
            else "doesn't end early, so every look is a whole compile"
        )
        wanted = [
            f"{name}=={version}"
            for name, version in VERSIONS.items()
            if installed.get(name) != version
        ]
        mends = f": pip install {' '.join(wanted)}" if wanted else ""
        return f"libtpu {installed.get('libtpu', '(of no known version)')} {lacks}{mends}"


def says_too_little_memory(error: str) -> bool:
    """Returns whether the compiler refused for lack of main memory."""
    return any(words in error for words in _TOO_LITTLE_MEMORY)


def find_abilities(ask: Ask, ending_early: Mapping[str, str]) -> Abilities:
    """Asks a compiler what it can, by compiles of a tiny program.

    ending_early: options with which it is to end early, for want of main memory.
    """
    options = {**_OPTIONS, **ending_early}
    missing = []
    while True:
        error = ask(_MODULE, options)
        unknown = None if error is None else _UNKNOWN.search(error)
        if unknown is None or unknown[1] not in options:
            break
        missing.append(unknown[1])
        del options[unknown[1]]
    ends_early = error is not None and says_too_little_memory(error)
    return Abilities(tuple(name for name in missing if name in _OPTIONS), ends_early)
