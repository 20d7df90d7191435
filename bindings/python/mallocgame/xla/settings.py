"""Settings of XLA:TPU's own method of placing buffers, which a request may change.

A request says of single buffers where they shall be; a setting says how the compiler goes about all
others. Each was found by trying (jax 0.10.2, libtpu 0.0.51): the compiler obeys it on v4i, v5e and
v6e alike, keeps its schedule and its prices, and makes some program faster
(docs/results/settings.md). Options of the same effect that are for one kind of chip only
(xla_tpu_cmem_..., xla_vf_vmem_...) are left out.
"""

import re
from collections.abc import Mapping

from mallocgame.errors import InvalidInputError

EAGERNESS = "xla_tpu_preferred_prefetch_overrides"
# Where copies begin in the time that there is for them: late (0) to early (1).
DEGREES = ("0", "0.75", "1", "0.5", "0.25")
PRELOADS = "xla_max_cross_program_prefetches"
_MOST_SLICES = "xla_tpu_sliced_prefetch_max_slices"
WHOLE_COPIES: Mapping[str, str] = {_MOST_SLICES: "0"}
_LEAST_OVERLAP = "xla_msa_min_overlap_to_async_copy_ratio"
SHORT_WINDOWS: Mapping[str, str] = {_LEAST_OVERLAP: "0"}  # copies that nothing hides, too
_FREED_PRELOADS = "xla_msa_enable_cross_program_prefetch_freeing"
_LARGER_PRELOADS = "xla_msa_cross_program_prefetch_permissive_mode"
_OTHER_PRELOADS = "xla_msa_default_cross_program_prefetch_heuristic"
# They have XLA choose what is preloaded, and do nothing where a request names it.
ABOUT_PRELOADS = (PRELOADS, _LARGER_PRELOADS, _OTHER_PRELOADS)

Use = tuple[str, int]  # an instruction, and which operand of it


def _eagerness(use: str, degree: str) -> str:
    return (
        f"overrides {{ hlo_operand_filter {{ {use}}} "
        f"override_options {{ prefetch_eagerness: {degree} }} }}"
    )


# The options, and of each the values that are tried, beside XLA's own. Those that were worth most
# come first.
SETTINGS: Mapping[str, tuple[str, ...]] = {
    # The KiB for what is brought in ahead of everything else, or has a block of its own. With it
    # XLA has all that loops use in fast memory.
    "xla_msa_explicit_prefetch_memory_limit_kib": ("16384", "98240", "65536", "8192", "32768"),
    PRELOADS: ("0", "1", "2", "4"),
    "xla_msa_use_bundle_aware_cost_model": ("true", "false"),
    EAGERNESS: tuple(_eagerness("", degree) for degree in DEGREES),
    # How fast copies are thought to be; this changes no price.
    "xla_tpu_async_copy_bandwidth_scaling_factor": (
        "2",
        "1.5",
        "0.65",
        "4",
        "1.25",
        "0.85",
        "0.75",
        "0.5",
        "1.1",
    ),
    # How long a copy may take up fast memory before it is needed, and how long it should, both as
    # multiples of the time that it takes.
    "xla_msa_max_overlap_to_mem_size_async_copy_ratio": (
        "2",
        "0.75",
        "12",
        "3",
        "1.5",
        "0.25",
        "6",
    ),
    "xla_msa_preferred_overlap_to_async_copy_ratio": ("10", "3", "5"),
    _LEAST_OVERLAP: ("0", "2"),
    _MOST_SLICES: ("0", "8", "2"),
    "xla_tpu_sliced_prefetch_preferred_slice_size": ("8388608", "4194304", "2097152"),
    "xla_msa_explicit_prefetch_pin_size_limit_kib": ("256", "4096", "16384"),
    "xla_msa_max_outstanding_prefetches": ("3", "10", "7"),
    "xla_msa_max_repacks": ("0", "8"),
    "xla_tpu_memory_space_assignment_while_execution_count": ("20",),
    "xla_tpu_prefetch_interval_picker_size_override": ("1048576", "65536", "16777216"),
    _LARGER_PRELOADS: ("true",),
    _FREED_PRELOADS: ("false",),
    _OTHER_PRELOADS: ("true",),
}

# Those that the twin of XLA's allocator (mallocgame/solvers/xla/options.h) knows.
IMITATED = (
    EAGERNESS,
    "xla_tpu_async_copy_bandwidth_scaling_factor",
    "xla_msa_max_overlap_to_mem_size_async_copy_ratio",
    "xla_msa_preferred_overlap_to_async_copy_ratio",
    _LEAST_OVERLAP,
    _MOST_SLICES,
    "xla_tpu_sliced_prefetch_preferred_slice_size",
    "xla_msa_max_outstanding_prefetches",
    "xla_msa_max_repacks",
    "xla_tpu_memory_space_assignment_while_execution_count",
    _FREED_PRELOADS,
)


def check_settings(settings: Mapping[str, str]) -> None:
    """InvalidInputError: a name or a value is none of SETTINGS."""
    for name, value in settings.items():
        if name not in SETTINGS:
            raise InvalidInputError(f"setting: found '{name}', allowed: {', '.join(SETTINGS)}")
        if value not in SETTINGS[name]:
            raise InvalidInputError(
                f"{name}: found '{value}', allowed: {', '.join(SETTINGS[name])}"
            )


def read_settings(options: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings among compiler options. InvalidInputError: a value is not allowed."""
    settings = {name: value for name, value in options.items() if name in SETTINGS}
    check_settings(settings)
    return settings


def eagerness_text(degrees: Mapping[Use, str], others: str | None) -> str:
    """Returns the value of EAGERNESS for copies that serve single uses.

    others: its value for all others, one of SETTINGS. The compiler takes the first that fits.
    """
    texts = [
        _eagerness(
            f'instruction_name_regex: "{exactly(instruction)}" operand_number: {operand} ', degree
        )
        for (instruction, operand), degree in degrees.items()
    ]
    return " ".join([*texts, *([] if others is None else [others])])


def read_eagerness(text: str) -> tuple[dict[Use, str], str | None]:
    """Returns what eagerness_text() made the text of. InvalidInputError: the rest is none of it."""
    degrees: dict[Use, str] = {}
    at = 0
    while found := _SINGLE.match(text, at):
        degrees[by_name(found["instruction"]), int(found["operand"])] = found["degree"]
        at = found.end()
    others = text[at:] or None
    if others is not None:
        check_settings({EAGERNESS: others})
    return degrees, others


def exactly(name: str) -> str:
    """Returns a regular expression for this very name, in a string of a text proto."""
    return re.sub(r"([^\w-])", r"\\\\\1", name)


def by_name(expression: str) -> str:
    """Returns the name that exactly() made an expression of."""
    return re.sub(r"\\\\(.)", r"\1", expression)


_SINGLE = re.compile(
    re.escape(_eagerness("USE", "DEGREE"))
    .replace(
        "USE", r'instruction_name_regex: "(?P<instruction>[^"]*)" operand_number: (?P<operand>\d+) '
    )
    .replace("DEGREE", r"(?P<degree>[\d.]+)")
    + " ?"
)
