"""A picture of a position: what rendered environments show. It needs NumPy only."""

import numpy as np

from mallocgame._core import State
from mallocgame.plots import style
from mallocgame.plots.style import residence_kinds


def picture(state: State, width: int = 512, height: int = 256) -> np.ndarray:
    """Draws the stays in fast memory as uint8 [height, width, 3].

    Time goes to the right and addresses go upwards. The colours are those of the page; what is
    grey is later than now.
    """
    game = state.game
    program, capacity = state.program, game.hardware.fast_bytes
    ticks = max(1, program.ticks)
    image = np.full((height, width, 3), style.rgb(style.PANEL), np.uint8)
    access = state.current_access()
    if access is not None:
        image[:, int(program.accesses[access]["tick"] / ticks * width) :] = style.rgb(style.GRID)
    sizes, plan = program.buffers["size_bytes"], state.plan()
    colours = [style.rgb(colour) for colour in style.KINDS.values()]
    for residence, kind in zip(plan.residences, residence_kinds(plan), strict=True):
        buffer = int(residence["buffer"])
        left, right = (int(residence[end] / ticks * width) for end in ("begin", "end"))
        low = int(residence["offset"] / capacity * height)
        high = int((residence["offset"] + sizes[buffer]) / capacity * height)
        high, right = max(high, low + 1), max(right, left + 1)
        image[height - high : height - low, left:right] = colours[kind]
        if high - low > 3 and right - left > 3:  # A thin gap tells neighbours apart.
            image[height - high, left:right] = image[height - high : height - low, right - 1] = (
                style.rgb(style.PANEL)
            )
    return image
