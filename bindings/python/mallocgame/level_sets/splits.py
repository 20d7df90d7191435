"""Which programs there are: families, splits by family, chips, and the variants of levels."""

import dataclasses
import re

from mallocgame._core import Hardware, Program, calibrated
from mallocgame.errors import InvalidInputError

SPLITS = ("train", "validation", "test")
SCHEDULE = "schedule"  # levels on which the order of instructions counts
CHIPS = ("tpu_v4i", "tpu_v5e", "tpu_v6e")
KNOWN = "known"  # the test family of the suite contended

# Split -> family of mallocgame.workloads.drawn -> number of programs. No family is in two splits,
# so that a test program is of an architecture that nothing was tuned on.
FAMILIES = {
    "train": {
        "perceptron": 29,
        "convolution": 20,
        "encoder": 29,
        "translator": 44,
        "ranker": 69,
        "autoencoder": 10,
        "recurrent": 79,
        "stacked": 78,
        "iterative": 74,
    },
    "validation": {"mixer": 20, "retrieval": 20, "rollout": 20},
    "test": {
        "mixture": 20,
        "graph": 20,
        "cached_decoder": 20,
        "sampler": 20,
        "state_space": 20,
        "generator": 20,
    },
}

# The same of whole models, the families of mallocgame.workloads.drawn.deep.
WHOLE_FAMILIES = {
    "whole-train": {
        "decoder_training": 2,
        "looped_training": 1,
        "decoding": 5,
        "prefill": 3,
        "deep_decoding": 2,
        "drafting": 2,
        "deep_encoder": 2,
        "residual_network": 2,
    },
    "whole-validation": {
        "alternating_decoder": 3,
        "deep_alternation": 2,
        "translation": 1,
        "linear_recurrence": 1,
    },
    "whole-test": {
        "expert_decoder": 4,
        "deep_experts": 2,
        "windowed_vision": 2,
        "denoiser": 2,
        "long_denoising": 2,
        "speech": 1,
    },
}
WHOLE_SPLITS = tuple(WHOLE_FAMILIES)
# Bundled programs of the suite `large` that are whole models of these families.
WHOLE_BUNDLED = {
    "llama_2b_decode_36l_b8_kv1024.tpu_v5e": ("whole-train", "decoding"),
    "llama_2b_prefill_36l_s1024.tpu_v5e": ("whole-train", "prefill"),
    "llama_draft_12l_b8_4words.tpu7x": ("whole-train", "drafting"),
    "gemma_2b_decode_26l_b8_kv2048.tpu_v6e": ("whole-validation", "alternating_decoder"),
    "moe_decode_24l_b32_kv1024_ep4.tpu_v6e_2x2": ("whole-test", "expert_decoder"),
    "swin_base_b8.tpu_v5e": ("whole-test", "windowed_vision"),
}

# Capacities of fast memory, in percent of what the program would use at once, and bandwidths of
# main memory, in percent of the chip's.
CAPACITIES = (40, 20, 10)
BANDWIDTHS = (100, 50)
# Whole models would use more than the chip has: these are percents of the chip's fast memory.
SHARES = (100, 75, 50, 25)


@dataclasses.dataclass(frozen=True)
class Variant:
    """How a level's hardware differs from the chip's, and its prices from the compiler's."""

    capacity: int | None = None  # percent of the program's peak_bytes; None: what the chip has
    bandwidth: int = 100  # percent of the chip's
    share: int = 100  # percent of the chip's fast memory
    calibrated: bool = False  # at calibrated prices, which are known of the chip's bandwidth only

    def level(self, program: str) -> str:
        """Returns the name of the level: PROGRAM, PROGRAM@c20, PROGRAM@c20b50 ..."""
        return f"{program}@{self.text}" if self.text else program

    @property
    def text(self) -> str:
        """What stands behind the @ of a level's name; empty: the chip is as it is."""
        capacity = "" if self.capacity is None else f"c{self.capacity}"
        share = "" if self.share == 100 else f"f{self.share}"
        bandwidth = "" if self.bandwidth == 100 else f"b{self.bandwidth}"
        return capacity + share + bandwidth + ("calibrated" if self.calibrated else "")

    @staticmethod
    def named(level: str) -> "Variant":
        """Returns the variant of a level's name. InvalidInputError: it names none."""
        _, at, text = level.partition("@")
        found = re.fullmatch(r"(?:c(\d+))?(?:f(\d+))?(?:b(\d+)|(calibrated))?", text)
        if found is None or bool(at) != bool(text):
            raise InvalidInputError(
                f"level '{level}': after @ it needs c, f and b with percents, or calibrated"
            )
        capacity, share, bandwidth, calibrated = found.groups()
        return Variant(
            int(capacity) if capacity else None,
            int(bandwidth or 100),
            int(share or 100),
            calibrated is not None,
        )

    def of(self, chip: Hardware, peak_bytes: int) -> Hardware:
        """Returns the chip with this variant's memories, under another name if they differ.

        Calibrated prices change it once more: `priced` makes them for it.
        """
        if dataclasses.replace(self, calibrated=False) == Variant():
            return chip
        fast = chip.fast_bytes * self.share // (100 * chip.alignment_bytes) * chip.alignment_bytes
        if self.capacity is not None:
            blocks = -(-peak_bytes * self.capacity // (100 * chip.alignment_bytes))
            fast = min(fast, max(1, blocks) * chip.alignment_bytes)
        return chip.replace(
            name=dataclasses.replace(self, calibrated=False).level(chip.name).replace("@", "_"),
            fast_bytes=fast,
            main_bytes_per_second=chip.main_bytes_per_second * self.bandwidth // 100,
        )

    def priced(self, program: Program, chip: Hardware, peak_bytes: int) -> Program:
        """Returns the program at this variant's prices."""
        return calibrated(program, self.of(chip, peak_bytes)) if self.calibrated else program


VARIANTS = [
    Variant(capacity, bandwidth) for capacity in (None, *CAPACITIES) for bandwidth in BANDWIDTHS
]
WHOLE_VARIANTS = [
    Variant(share=share, bandwidth=bandwidth, calibrated=at_calibrated)
    for share in SHARES
    for bandwidth, at_calibrated in ((100, False), (50, False), (100, True))
]


@dataclasses.dataclass(frozen=True)
class Draft:
    """A program that can be made: model `number` of a family, drawn with a seed, for a chip."""

    split: str
    family: str
    number: int
    seed: int

    @property
    def chip(self) -> str:
        """The chip: one after the other in each family."""
        return CHIPS[self.number % len(CHIPS)]

    @property
    def name(self) -> str:
        return f"{self.family}_{self.number:03}.{self.chip}"

    @property
    def whole(self) -> bool:
        """Whether it is a whole model."""
        return self.split in WHOLE_SPLITS


def drafts(seed: int = 0, share: float = 1.0, whole: bool = False) -> list[Draft]:
    """Returns what `mallocgame levels make` makes, in its order.

    share: of the numbers in FAMILIES, or of whole models in WHOLE_FAMILIES; with more than 1 there
    are more programs, with the same names. Families take turns, so that the beginning of the list
    is a fair sample of all.
    """
    found = [
        ((number + 0.5) / count, split, family, number)
        for split, families in (WHOLE_FAMILIES if whole else FAMILIES).items()
        for family, count in families.items()
        for number in range(max(1, round(share * count)))
    ]
    return [Draft(split, family, number, seed) for _, split, family, number in sorted(found)]
