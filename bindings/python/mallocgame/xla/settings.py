"""Settings of XLA:TPU's own method of placing buffers, which a request may change.

A request says of single buffers where they shall be; a setting says how the compiler goes about all
others. Each was found by trying (jax 0.10.2, libtpu 0.0.51): the compiler obeys it on v4i, v5e and
v6e alike, keeps its schedule and its prices, and makes some program faster
(docs/results/settings.md). Options of the same effect that are for one kind of chip only
(xla_tpu_cmem_..., xla_vf_vmem_...) are left out.
"""

from collections.abc import Mapping

from mallocgame.errors import InvalidInputError

PRELOADS = "xla_max_cross_program_prefetches"
_MOST_SLICES = "xla_tpu_sliced_prefetch_max_slices"
WHOLE_COPIES: Mapping[str, str] = {_MOST_SLICES: "0"}
_LARGER_PRELOADS = "xla_msa_cross_program_prefetch_permissive_mode"
_OTHER_PRELOADS = "xla_msa_default_cross_program_prefetch_heuristic"
# They have XLA choose what is preloaded, and do nothing where a request names it.
ABOUT_PRELOADS = (PRELOADS, _LARGER_PRELOADS, _OTHER_PRELOADS)

# The options, and of each the values that are tried, beside XLA's own. Those that were worth most
# come first.
SETTINGS: Mapping[str, tuple[str, ...]] = {
    # The KiB for what is brought in ahead of everything else, or has a block of its own. With it
    # XLA has all that loops use in fast memory.
    "xla_msa_explicit_prefetch_memory_limit_kib": ("16384", "98240", "65536", "8192", "32768"),
    PRELOADS: ("0", "1", "2", "4"),
    "xla_msa_use_bundle_aware_cost_model": ("true", "false"),
    # Where copies begin in the time that there is for them: late (0) to early (1).
    "xla_tpu_preferred_prefetch_overrides": tuple(
        "overrides { hlo_operand_filter { } "
        f"override_options {{ prefetch_eagerness: {eagerness} }} }}"
        for eagerness in ("0", "0.75", "1", "0.5", "0.25")
    ),
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
    "xla_msa_min_overlap_to_async_copy_ratio": ("0", "2"),
    _MOST_SLICES: ("0", "8", "2"),
    "xla_tpu_sliced_prefetch_preferred_slice_size": ("8388608", "4194304", "2097152"),
    "xla_msa_explicit_prefetch_pin_size_limit_kib": ("256", "4096", "16384"),
    "xla_msa_max_outstanding_prefetches": ("3", "10", "7"),
    "xla_msa_max_repacks": ("0", "8"),
    "xla_tpu_memory_space_assignment_while_execution_count": ("20",),
    "xla_tpu_prefetch_interval_picker_size_override": ("1048576", "65536", "16777216"),
    _LARGER_PRELOADS: ("true",),
    "xla_msa_enable_cross_program_prefetch_freeing": ("false",),
    _OTHER_PRELOADS: ("true",),
}


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
