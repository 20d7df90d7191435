"""The one look of all pictures: what the page, the plots and rendered environments share.

It needs no drawing library.
"""

from typing import Any

import numpy as np

from mallocgame._core import EVICTION, PREFETCH, Plan

# The kinds of stays in fast memory, by how the bytes come and go, and their colours. The page's
# style sheet has the same (light) colours, and its scripts the same order.
KINDS = {
    "preloaded": "#646e7b",
    "prefetched": "#0067a3",
    "evicted": "#b84f00",
    "only in fast memory": "#00795a",
}
_PRELOADED, _PREFETCHED, _WRITTEN_BACK, _ONLY_FAST = range(len(KINDS))

PANEL, PAGE, GRID, LINE, TEXT, QUIET = (
    "#ffffff",
    "#f3f5f8",
    "#e7eaef",
    "#d5dae1",
    "#171b21",
    "#56606d",
)

# Colours and shapes of curves and marks. People who see few colours can tell them apart as well.
CYCLE = ("#0067a3", "#b84f00", "#00795a", "#8b2fb0", "#c1203f", "#646e7b", "#00829c", "#7d6500")
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")
XLA, BOUND = "#8b2fb0", "#4b5563"

# From dark to light, so that the order is seen without colour as well.
_FAST_TO_SLOW = ("#12406e", "#2f94a8", "#e5b76c")


def residence_kinds(plan: Plan) -> np.ndarray:
    """Returns the index in KINDS of each residence of a plan."""
    moves = plan.copies
    kinds = np.full(len(plan.residences), _ONLY_FAST)
    # Later lines override earlier ones, so they go from the weakest to the strongest.
    kinds[moves["residence"][moves["kind"] == EVICTION]] = _WRITTEN_BACK
    kinds[moves["residence"][moves["kind"] == PREFETCH]] = _PREFETCHED
    kinds[moves["residence"][moves["preload"]]] = _PRELOADED
    return kinds


def rgb(colour: str) -> tuple[int, int, int]:
    """Returns red, green and blue: '#0067a3' is (0, 103, 163)."""
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue


def level_colours(levels: int) -> list[str]:
    """Returns a colour for each of 2 or more memory levels, the fastest first."""

    def mixed(place: float) -> str:  # from 0 to the last of _FAST_TO_SLOW
        first = min(int(place), len(_FAST_TO_SLOW) - 2)
        pair = zip(rgb(_FAST_TO_SLOW[first]), rgb(_FAST_TO_SLOW[first + 1]), strict=True)
        return "#" + "".join(f"{round(a + (b - a) * (place - first)):02x}" for a, b in pair)

    return [mixed(level * (len(_FAST_TO_SLOW) - 1) / (levels - 1)) for level in range(levels)]


def matplotlib_style() -> dict[Any, Any]:
    """Returns the settings for matplotlib.rc_context."""
    from cycler import cycler

    return {
        "figure.facecolor": PAGE,
        "savefig.facecolor": PAGE,
        "axes.facecolor": PANEL,
        "axes.edgecolor": LINE,
        "axes.labelcolor": TEXT,
        "axes.titlecolor": TEXT,
        "axes.titlesize": 11,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.labelsize": 9,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.prop_cycle": cycler(color=CYCLE),
        "axes.spines.top": False,
        "axes.spines.right": False,
        "grid.color": GRID,
        "grid.linewidth": 0.8,
        "text.color": TEXT,
        "font.size": 9,
        "font.family": "sans-serif",
        "xtick.color": QUIET,
        "ytick.color": QUIET,
        "xtick.labelsize": 8,
        "ytick.labelsize": 8,
        "legend.fontsize": 8,
        "legend.frameon": False,
        "lines.linewidth": 1.8,
        "savefig.dpi": 150,
    }
