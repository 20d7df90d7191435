"""The one look of all pictures: what the page, the plots and rendered environments share. Needs
no drawing library.
"""

# Of a stay in fast memory, by how its bytes come and go. The page's style sheet has the same
# colours (light).
KINDS = {
    "preloaded": "#646e7b",
    "prefetched": "#0067a3",
    "written back": "#b84f00",
    "only in fast memory": "#00795a",
}

PANEL, PAGE, GRID, LINE, TEXT, QUIET = (
    "#ffffff",
    "#f3f5f8",
    "#e7eaef",
    "#d5dae1",
    "#171b21",
    "#56606d",
)

# Of curves and marks, told apart by people who see few colours, and by shape as well.
CYCLE = ("#0067a3", "#b84f00", "#00795a", "#8b2fb0", "#c1203f", "#646e7b", "#00829c", "#7d6500")
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")
XLA, BOUND = "#8b2fb0", "#4b5563"

# dark to light, so that the order is seen without colour, too
_FAST_TO_SLOW = ("#12406e", "#2f94a8", "#e5b76c")


def rgb(colour: str) -> tuple[int, int, int]:
    """'#0067a3' -> (0, 103, 163)."""
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue


def level_colours(levels: int) -> list[str]:
    """One a memory level, the fastest first; levels >= 2."""

    def mixed(place: float) -> str:  # from 0 to the last anchor
        first = min(int(place), len(_FAST_TO_SLOW) - 2)
        pair = zip(rgb(_FAST_TO_SLOW[first]), rgb(_FAST_TO_SLOW[first + 1]), strict=True)
        return "#" + "".join(f"{round(a + (b - a) * (place - first)):02x}" for a, b in pair)

    return [mixed(level * (len(_FAST_TO_SLOW) - 1) / (levels - 1)) for level in range(levels)]


def matplotlib_style() -> dict:
    """For matplotlib.rc_context."""
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
