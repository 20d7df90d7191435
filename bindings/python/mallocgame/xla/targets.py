"""Chips that XLA:TPU compiles for, and the name of each in XLA's world and in ours."""

import dataclasses
import math
import re
from collections.abc import Mapping

from mallocgame._core import Hardware
from mallocgame.errors import InvalidInputError


@dataclasses.dataclass(frozen=True)
class _Chip:
    topology: str  # of one chip
    config: str | None = None  # "megacore" makes one device of a chip's two cores
    # Where fast memory is VMEM: the KiB of it that kernels' scratch and memory space assignment
    # share. None: fast memory is CMEM, which is for assignment only.
    shared_kib: int | None = None
    divisible: bool = True  # whether an option gives assignment less than all
    cores: int = 1  # devices of one chip where several chips are asked for

    @property
    def family(self) -> str:
        return self.topology.partition(":")[0]


_CHIPS = {
    "tpu_v4i": _Chip("v4 lite:1x1"),
    "tpu_v4": _Chip("v4:1x1x1", cores=2),
    "tpu_v4_megacore": _Chip("v4:1x1x1", config="megacore"),
    "tpu_v5p": _Chip("v5p:1x1x1", shared_kib=65472),
    "tpu_v5e": _Chip("v5e:1x1", shared_kib=131072),
    "tpu_v6e": _Chip("v6e:1x1", shared_kib=131008),
    # Here assignment itself gives each kernel its scratch, out of the same bytes.
    "tpu7x": _Chip("tpu7x:1x1x1", shared_kib=65472, divisible=False, cores=2),
}
TARGETS = tuple(_CHIPS)
# What JAX calls a device of each (device_kind, num_cores), in the words of several versions.
_DEVICES = {
    ("TPU v4 lite", 1): "tpu_v4i",
    ("TPU v4i", 1): "tpu_v4i",
    ("TPU v4", 1): "tpu_v4",
    ("TPU v4", 2): "tpu_v4_megacore",
    ("TPU v5", 2): "tpu_v5p",
    ("TPU v5p", 2): "tpu_v5p",
    ("TPU v5 lite", 1): "tpu_v5e",
    ("TPU v5e", 1): "tpu_v5e",
    ("TPU v6 lite", 1): "tpu_v6e",
    ("TPU v6e", 1): "tpu_v6e",
    ("TPU7x", 1): "tpu7x",
}


@dataclasses.dataclass(frozen=True)
class Target:
    """One chip, whole or with less fast memory, or several chips that are alike.

    A program for several is the same on each of their devices, and so is a plan. `hardware` is that
    of one device.

    `hardware.max_preloads` limits the plans that the compiler is asked for. XLA's own answer has
    its default, one.
    """

    name: str  # of the chip, one of TARGETS
    hardware: Hardware
    fast_mib: int | None  # MiB of fast memory, fewer than the chip has; None is all of it
    shape: str | None = None  # how several chips are laid out, as in 2x2; None is one chip
    # The caller's options of every compile, sorted by name.
    given_options: tuple[tuple[str, str], ...] = ()

    @property
    def topology(self) -> str:
        """Its name in jax.experimental.topologies."""
        chip = _CHIPS[self.name]
        return chip.topology if self.shape is None else f"{chip.family}:{self.shape}"

    @property
    def devices(self) -> int:
        """How many devices run the program."""
        if self.shape is None:
            return 1
        return _CHIPS[self.name].cores * math.prod(map(int, self.shape.split("x")))

    @property
    def title(self) -> str:
        """Its name as find_target() takes it: tpu_v5e, or tpu_v5e:2x2."""
        return self.name if self.shape is None else f"{self.name}:{self.shape}"

    @property
    def config(self) -> str | None:
        """The chip's configuration there, if it isn't the default."""
        return _CHIPS[self.name].config

    @property
    def options(self) -> dict[str, str]:
        """The options of every compile for it."""
        given = dict(self.given_options)
        if self.fast_mib is None:
            return given
        kib, shared_kib = self.fast_mib * 1024, _CHIPS[self.name].shared_kib
        if shared_kib is None:
            return given | {"xla_tpu_max_cmem_used_by_memory_space_assignment": str(kib)}
        # The limits for assignment itself are ignored on these chips. It gets what kernels leave.
        return given | {"xla_tpu_scoped_vmem_limit_kib": str(shared_kib - kib)}

    @property
    def note(self) -> str | None:
        """What one must know to compare its prices with those of the whole chip."""
        if self.fast_mib is None or _CHIPS[self.name].shared_kib is None:
            return None
        return (
            f"On {self.name} the fast memory that a plan doesn't get is scratch for kernels, so "
            f"kernels and their prices differ from those of {self.name} as a whole."
        )

    def __str__(self) -> str:
        """The name of the hardware, and what its preset doesn't say."""
        shape = "" if self.shape is None else f" {self.shape}"
        given = "".join(f", {name}={value}" for name, value in self.given_options)
        return f"{self.hardware.name}{shape} (preloads: {self.hardware.max_preloads}{given})"


def find_target(
    name: str,
    fast_mib: int | None = None,
    preloads: int | None = None,
    options: Mapping[str, str] | None = None,
) -> Target:
    """Returns the target of a chip's name (tpu_v4i) or topology (v4 lite:1x1).

    Several chips have their shape behind the name: tpu_v5e:2x2, or v5e:2x2. One device of a chip
    with two is the target without a shape, or with the shape of one chip.

    fast_mib: MiB of fast memory, at most what the chip has; None is all of it. Some chips can't be
    compiled for with less, and on some prices change with it (Target.note).
    preloads: the most parameters that a plan may preload; None is what XLA does by itself, one.
    options: of the compiler, for every compile; those that fast_mib takes go before them.

    InvalidInputError: there is no such chip, or fast memory can't have that size.
    """
    by_family = {one.family: chip for chip, one in _CHIPS.items() if one.config is None}
    family, colon, found_shape = name.partition(":")
    chip = family if family in _CHIPS else by_family.get(family, "") if colon else ""
    if not chip:
        raise InvalidInputError(
            f"target: found '{name}', allowed: {', '.join(_CHIPS)}, "
            "and each with the shape of several chips, as in tpu_v5e:2x2"
        )
    shape = _shape_of(chip, found_shape) if colon else None
    hardware = Hardware.preset(chip)
    if fast_mib is not None and fast_mib * 2**20 != hardware.fast_bytes:
        least, most = fast_mib_range(chip)
        if not least <= fast_mib <= most:
            allowed = f"{least} to {most}" if most else "all that it has, for want of an option"
            raise InvalidInputError(f"fast_mib: found {fast_mib}, allowed: {allowed} ({chip})")
        hardware = Hardware.preset(f"{chip}_{fast_mib}mib")
    else:
        fast_mib = None
    if preloads is not None:
        hardware = hardware.replace(max_preloads=preloads)
    return Target(chip, hardware, fast_mib, shape, tuple(sorted((options or {}).items())))


def bundled_target(name: str, preloads: int | None = None) -> Target:
    """Returns the target of a bundled program, by what follows its model in its name.

    That is a chip, perhaps with the MiB of fast memory or the shape of several chips: tpu_v4i,
    tpu_v4i_16mib, tpu_v5e_2x2. preloads and errors as those of find_target().
    """
    parts = re.fullmatch(r"(.*?)(?:_(\d+)mib|_(\d+(?:x\d+)+))?", name, re.DOTALL)
    assert parts is not None, "everything is a chip's name and nothing behind it"
    chip, mib, shape = parts.groups()
    title = chip if shape is None else f"{chip}:{shape}"
    return find_target(title, None if mib is None else int(mib), preloads)


def _shape_of(chip: str, found: str) -> str | None:
    """Checks how several chips are laid out; None: it is one chip."""
    one = _CHIPS[chip].topology.partition(":")[2]
    sides = one.count("x") + 1
    if not re.fullmatch(r"[1-9]\d{0,2}(x[1-9]\d{0,2})*", found) or found.count("x") + 1 != sides:
        example = "x".join("2" if side < 2 else "1" for side in range(sides))
        raise InvalidInputError(
            f"target: found shape '{found}', allowed: {sides} sides, as in {chip}:{example}"
        )
    return None if found == one else found


def fast_mib_range(chip: str) -> tuple[int, int]:
    """Returns the least and most MiB that a chip can be compiled for; (0, 0): only all it has."""
    if not _CHIPS[chip].divisible:
        return 0, 0
    return 1, Hardware.preset(chip).fast_bytes // 2**20


def target_of_device(kind: str, cores: int) -> str | None:
    """Returns the name of the target that a device of JAX is, by its device_kind and num_cores.

    None: it is none.
    """
    return _DEVICES.get((kind, cores))


def kinds_of_target(name: str) -> tuple[str, ...]:
    """Returns what JAX calls the devices of a target."""
    return tuple(kind for (kind, _), target in _DEVICES.items() if target == name)
