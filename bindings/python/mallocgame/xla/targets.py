"""Chips that XLA:TPU compiles for, and the name of each in XLA's world and in ours."""

import dataclasses

from mallocgame._core import Hardware
from mallocgame.errors import InvalidInputError


@dataclasses.dataclass(frozen=True)
class Target:
    """One chip, whole or with less fast memory.

    `hardware.max_preloads` limits the plans that the compiler is asked for. XLA's own answer has
    its default, one.
    """

    hardware: Hardware
    topology: str  # its name in jax.experimental.topologies
    capacity_option: str  # the compiler option for the KiB of fast memory that may be used
    fast_mib: int | None  # MiB of fast memory, fewer than the chip has; None is all of it

    @property
    def options(self) -> dict[str, str]:
        """The options of every compile for it."""
        return {} if self.fast_mib is None else {self.capacity_option: str(self.fast_mib * 1024)}

    def __str__(self) -> str:
        """The name of the hardware, and what its preset doesn't say."""
        return f"{self.hardware.name} (preloads: {self.hardware.max_preloads})"


# Of each chip: its topology, and the option that limits its fast memory.
_CHIPS = {
    "tpu_v4i": ("v4 lite:1x1", "xla_tpu_max_cmem_used_by_memory_space_assignment"),
    "tpu_v5e": ("v5e:1x1", "xla_vf_max_vmem_used_by_memory_space_assignment"),
    "tpu_v6e": ("v6e:1x1", "xla_gf_max_vmem_used_by_memory_space_assignment"),
}
TARGETS = tuple(_CHIPS)


def find_target(name: str, fast_mib: int | None = None, preloads: int | None = None) -> Target:
    """Returns the target of a hardware name (tpu_v4i) or topology (v4 lite:1x1).

    fast_mib: MiB of fast memory, at most what the chip has; None is all of it.
    preloads: the most parameters that a plan may preload; None is what XLA does by itself, one.

    InvalidInputError: there is no such chip, or it has not so much fast memory.
    """
    chip = {topology: hardware for hardware, (topology, _) in _CHIPS.items()}.get(name, name)
    if chip not in _CHIPS:
        raise InvalidInputError(f"target: found '{name}', allowed: {', '.join(_CHIPS)}")
    topology, option = _CHIPS[chip]
    whole = Hardware.preset(chip)
    most = whole.fast_bytes // 2**20
    if fast_mib is not None and not 1 <= fast_mib <= most:
        raise InvalidInputError(f"fast_mib: found {fast_mib}, allowed: 1 to {most} ({chip})")
    if fast_mib == most:
        fast_mib = None
    hardware = whole if fast_mib is None else Hardware.preset(f"{chip}_{fast_mib}mib")
    if preloads is not None:
        hardware = hardware.replace(max_preloads=preloads)
    return Target(hardware, topology, option, fast_mib)
