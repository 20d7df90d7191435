"""Fits the law's parameters to the points, and says how well it does where it is not fitted.

    python benchmarks/measured/fit.py FOLDER [--write]

FOLDER is predict.py's. The law is the library's (mallocgame/program/calibrate.h); this finds its
figures. Prints the parameters, and how well it does with every source, kind and chip left out in
turn. --write: writes mallocgame/hardware/price_law_figures.inc. Needs scipy, no chip and no
compiler.
"""

import dataclasses
import math
import operator
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from figures import figures, heading, line
from points import load
from predict import Row, rows_of
from scipy.optimize import minimize

import mallocgame as mg
from mallocgame import experiments as ex

Values = dict[str, float]

FILE = pathlib.Path(__file__).parents[2] / "mallocgame/hardware/price_law_figures.inc"

# The parameters that are fitted, all chips together, why there is one, and the value that one has
# which no point decides.
FREE = {
    "speed": ("of what the compiler's cycles say; they hold a reserve", 1.0),
    # 8192 cubed on v5e by a kernel of JAX's documentation takes 6.10 ms.
    "kernel": ("of the chip's flops, that custom calls for ragged products reach", 0.915),
}
# The clock that public flops imply, over the compiler's. It is not fitted.
CLOCK = {"tpu_v5p": 1.75 / 1.5, "tpu7x": 2.2 / 1.9}
# Cores that share an instruction, of which the compiler prices one. It is not fitted, but seen on
# these points only.
CORES = {"tpu_v5p": 2}
CORES_SEEN_BY = ("tokamax", "tpu_v5p")


@dataclasses.dataclass(frozen=True)
class Achieved:
    """What main memory moves over what a chip's preset says, as somebody measured it."""

    share: float
    source: str
    kind: str  # of the functions that show it
    text: str


# It is not fitted. A chip without a figure borrows that of another.
ACHIEVED = {
    "tpu_v4_megacore": Achieved(0.80, "tpuasm", "copy", "946 to 998 of 1,228 GB/s"),
    "tpu_v5e": Achieved(0.90, "tokamax", "ragged-dot", "at least 734 of 819 GB/s"),
    "tpu_v6e": Achieved(0.83, "tpu-recipes", "copy", "1,360 of 1,640 GB/s"),
    "tpu7x": Achieved(0.87, "tpu-recipes", "copy", "3,200 of 3,690 GB/s"),
}
BORROWED = {"tpu_v4i": "tpu_v4_megacore", "tpu_v4": "tpu_v4_megacore", "tpu_v5p": "tpu_v5e"}
CHIPS = mg.Hardware.preset_names()
# tpuasm measures 0.36 to 0.46 µs on v4; the other chips borrow it.
COPY_LATENCY_PS = 450_000
_LEFT_OUT = ("source", "family", "chip")


def main(folder: pathlib.Path, *, write: bool = False) -> None:
    """Prints what was fitted and how well it does."""
    sources, points = load()
    rows = rows_of(folder, [point for point in points if not point.held], sources)
    values = fitted(rows)
    print("\n".join(parameter_table(rows, values)))
    print("\n".join(error_table(rows, values)))
    if write:
        FILE.write_text(figures_text(rows, values))


def laws(values: Values, without: str = "") -> dict[str, mg.calibration.PriceLaw]:
    """Returns the law of each chip.

    without: a source, kind or chip, whose figures are not used.
    """
    return {chip: _law(chip, values, without) for chip in CHIPS}


def fitted(rows: Sequence[Row], without: str = "") -> Values:
    """Returns the parameters with the least mean of |log(predicted / measured)|.

    without: as for laws().
    """
    # Points of one kind on one chip count together as the root of their number, so that no kind
    # that was measured often decides alone.
    groups = [(row.point.chip, row.point.kind) for row in rows]
    weights = np.array([1 / math.sqrt(groups.count(group)) for group in groups])
    measured = np.log([row.point.measured_us for row in rows])

    def loss(logs: Any) -> float:
        found = predictions(rows, laws(dict(zip(FREE, np.exp(logs), strict=True)), without))
        errors = np.abs(np.log(found) - measured)
        # A parameter that no point decides keeps its value.
        kept = 1e-3 * np.square(logs - start).sum()
        return float((weights * errors).sum() / weights.sum() + kept)

    start = np.log([value for _, value in FREE.values()])
    best = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-5})
    return dict(zip(FREE, np.exp(best.x).tolist(), strict=True))


def predictions(rows: Sequence[Row], by_chip: dict[str, mg.calibration.PriceLaw]) -> list[float]:
    """Returns the microseconds that a law predicts."""
    return [row.calibrated_us(by_chip[row.point.chip]) for row in rows]


def left_out(rows: Sequence[Row], key: Callable[[Row], str]) -> list[float]:
    """Returns predictions of each group of rows by a law that knows nothing of the group."""
    found = [0.0] * len(rows)
    for group in {key(row) for row in rows}:
        held = [i for i, row in enumerate(rows) if key(row) == group]
        others = [row for row in rows if key(row) != group]
        by_chip = laws(fitted(others, group), group)
        for i, value in zip(held, predictions([rows[i] for i in held], by_chip), strict=True):
            found[i] = value
    return found


def parameter_table(rows: Sequence[Row], values: Values) -> list[str]:
    """Returns a row for each parameter: its value, and its range as each source is left out."""
    sources = sorted({row.point.source for row in rows})
    others = [fitted([row for row in rows if row.point.source != one], one) for one in sources]
    lines = ["| parameter | value | without one source | is |", "| --- | --: | --: | --- |"]
    for name, (reason, _) in FREE.items():
        low, high = (pick(each[name] for each in others) for pick in (min, max))
        lines.append(f"| `{name}` | {values[name]:.3f} | {low:.2f} to {high:.2f} | {reason} |")
    return [*lines, ""]


def error_table(rows: Sequence[Row], values: Values) -> list[str]:
    """Returns the figures at the compiler's prices, in sample and left out in turn."""
    measured = [row.point.measured_us for row in rows]
    columns = {
        "the compiler's prices": [row.predicted_us for row in rows],
        "the law, fitted to all": predictions(rows, laws(values)),
    }
    for key in _LEFT_OUT:
        name = "kind" if key == "family" else key
        columns[f"the law, its {name} left out"] = left_out(
            rows, operator.attrgetter(f"point.{key}")
        )
    lines = heading("prices")
    lines += [line(name, figures(found, measured)) for name, found in columns.items()]
    lines += ["", *_by_group(rows, columns, measured)]
    return lines


def _by_group(
    rows: Sequence[Row], columns: dict[str, list[float]], measured: list[float]
) -> list[str]:
    """Returns bias and median error of each chip and kind, before, after and left out."""
    shown = [name for name in columns if not name.endswith("chip left out")]
    lines = ["| bias, median error | n | " + " | ".join(shown) + " |"]
    lines.append("| --- | --: |" + " --: |" * len(shown))
    names = [row.point.chip for row in rows]
    kinds = [f"{row.point.chip}, {row.point.kind}" for row in rows]
    for keys in (names, kinds):
        for one in sorted(set(keys)):
            held = [i for i, key in enumerate(keys) if key == one]
            cells = []
            for name in shown:
                found = figures([columns[name][i] for i in held], [measured[i] for i in held])
                cells.append(f"{found.bias:.2f}, {found.error:.3f}")
            lines.append(f"| {one} | {len(held)} | {' | '.join(cells)} |")
    return lines


def figures_text(rows: Sequence[Row], values: Values) -> str:
    """Returns the file of the library's figures, each with where it is from."""
    counted = {chip: sum(row.point.chip == chip for row in rows) for chip in CHIPS}
    lines = ["// The figures of price_law.cc. benchmarks/measured/fit.py --write writes this file."]
    for chip, law in laws(values).items():
        latency = "tpuasm: 0.36 to 0.46 µs"
        sources = (
            _achieved_from(chip),
            latency if chip.startswith("tpu_v4") else f"borrowed from tpu_v4 ({latency})",
            _speed_from(chip, counted),
            f"fitted to {len(rows)} points of all chips",
        )
        numbers = f"{law.main_share:.4g}, {law.copy_latency_ps}, {law.speed:.4g}, {law.kernel:.4g}"
        quoted = ",\n ".join(f'"{text}"' for text in sources)
        lines.append(f'{{"{chip}",\n {{{numbers}}},\n {quoted}}},')
    return "\n".join(lines) + "\n"


def _speed_from(chip: str, counted: dict[str, int]) -> str:
    own = f"{counted[chip]} of its own points" if counted[chip] else "no point of its own"
    clock = f", over {CLOCK[chip]:.3f} for its clock" if chip in CLOCK else ""
    cores = f", over {CORES[chip]} cores" if chip in CORES else ""
    return f"the shared speed{clock}{cores}; {own}"


def _achieved_from(chip: str) -> str:
    figure = ACHIEVED[BORROWED.get(chip, chip)]
    text = f"{figure.source}: {figure.text}"
    return f"borrowed from {BORROWED[chip]} ({text})" if chip in BORROWED else text


def _law(chip: str, values: Values, without: str) -> mg.calibration.PriceLaw:
    cores = 1 if without in CORES_SEEN_BY else CORES.get(chip, 1)
    return mg.calibration.PriceLaw(
        main_share=_share(BORROWED.get(chip, chip), without),
        copy_latency_ps=COPY_LATENCY_PS,
        speed=values["speed"] / CLOCK.get(chip, 1.0) / cores,
        kernel=min(1.0, values["kernel"]),
    )


def _share(chip: str, without: str) -> float:
    """Returns the share of a chip that has a figure, or the mean of those that may be used."""
    usable = {
        one: figure.share
        for one, figure in ACHIEVED.items()
        if without not in (one, figure.source, figure.kind)
    }
    return usable.get(chip, sum(usable.values()) / len(usable))


if __name__ == "__main__":
    ex.main(main)
