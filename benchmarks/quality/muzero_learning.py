"""Measures how both MuZero agents learn, beside agents that don't, and what they gain over XLA.

    python benchmarks/quality/muzero_learning.py FOLDER [--seconds 180] [--seeds 5]
    [--agents 'AGENT;...'] [--curves PNG] [--bars PNG] [--jobs 1 | --ray ADDRESS] [PROGRAM ...]

An AGENT is a preset, `paper` or `strong`, or one with settings, as `paper:reanalysed=0`, or with
prices, as `strong:prices=compiler`; those with updates=0 learn nothing. Each is trained on each
program for so many seconds of processor time, its demonstrations and polishing included. Each
answer is a small file in FOLDER, so that this can be interrupted and goes on where it stopped.

Prints two tables in Markdown. The first has what games of self-play save of the all-main latency
in the first and in the last tenth of the training, the mean over the seeds with 95 % intervals
(Welch's test), beside greedy in the paper's game and XLA's own plan. The second has XLA's latency
over that of the best plan, the geometric mean over the seeds, at the compiler's prices and at
calibrated ones, and, as a compiler would use it, of the better one of that plan and XLA's. Needs
mallocgame[agents,benchmark].
"""

import math
import time

import numpy as np

import mallocgame as mg
from mallocgame import agents, plots
from mallocgame import experiments as ex
from mallocgame.experiments.plan_rows import plan_row, reference

AGENTS = ("paper", "paper:updates=0", "strong", "strong:updates=0,prior=uniform,proposals=uniform")
PROGRAMS = (
    "mlp_train_adam_b512.tpu_v4i_16mib",
    "moe_transformer_2l_b4_s128.tpu_v4i",
    "resnet50_b64.tpu_v4i",
    "bert_base_b1_s128.tpu_v4i_16mib",
)
# How many updates MuZero as published does in a second of a core: its learning rate and temperature
# fall to the end of the training.
UPDATES_PER_SECOND = 30
PIECES = 10  # of a training; the first and the last one are compared
COMPILER, CALIBRATED = "speedup_vs_xla", "speedup_calibrated_vs_xla"


def measure(seed: int, program: str, agent: str, seconds: float) -> dict:
    loaded = mg.load_program(program)
    begin, wall = time.process_time(), time.monotonic()
    preset, _, texts = agent.partition(":")
    config = dict(text.split("=") for text in texts.split(",") if text) | {"preset": preset}
    prices = config.pop("prices", None)
    polishes = preset == "strong"
    if not polishes:
        config.setdefault("decay_updates", str(max(1, round(UPDATES_PER_SECOND * seconds))))
    trainer = agents.begin_muzero(loaded, seconds, config, seed, 1, prices=prices)
    end = seconds * (1 - agents.POLISH_SHARE if polishes else 1)
    curve = []
    while (now := time.process_time() - begin) < end:
        step = trainer.step()
        curve.append((now, step["games"], step["mean_return"][0], step["best_ps"][0]))
    # Polishing has wall time, of which other work on the core takes a share.
    left = (seconds - now) * (time.monotonic() - wall) / now
    result = trainer.polish(seconds=left) if polishes else trainer.best()
    xla = reference(loaded, loaded.hardware)
    row = plan_row(
        loaded,
        loaded.hardware,
        result.report,
        mg.validate(loaded, result.plan),
        xla,
        result,
        plan=result.plan,
    )
    greedy = mg.solve(loaded, "greedy", game=mg.TimeGame(paper_actions=True)).report.latency_ps
    keys = ("valid", "latency_ps", "all_main_ps", "xla_ps", COMPILER, CALIBRATED)
    # JSON has no NaN: a step in which no game ended has no mean.
    kept = [(at, games, mean, best) for at, games, mean, best in curve if games]
    return {key: row[key] for key in keys} | {"greedy_ps": greedy, "curve": kept}


def piece(row: ex.Row, number: int, pieces: int, seconds: float) -> float:
    """What games save that ended in a piece of the training; NaN if none did."""
    inside = [
        (games, mean)
        for at, games, mean, _ in row["curve"]
        if number <= pieces * at / seconds < number + 1
    ]
    games = sum(games for games, _ in inside)
    return sum(games * mean for games, mean in inside) / games if games else math.nan


def ends(row: ex.Row) -> tuple[float, float]:
    """The same of the first and of the last tenth in which games ended; NaN if none did."""
    if not row["curve"]:
        return math.nan, math.nan
    last = row["curve"][-1][0] * (1 + 1e-9)
    found = [piece(row, number, PIECES, last) for number in range(PIECES)]
    known = [one for one in found if not math.isnan(one)]
    return known[0], known[-1]


def saved(row: ex.Row, key: str) -> str:
    return f"{1 - row[key] / row['all_main_ps']:.4f}"


def learning(rows: list[ex.Row]) -> ex.Table:
    table = ex.Table(["program", "agent", "greedy", "XLA", "first", "last", "gained", "best plan"])
    table.left = 2
    for (program, agent), several in ex.grouped(rows, "program", "agent").items():
        first, last = np.array([ends(row) for row in several]).T
        gained = ex.difference(last, first) if len(several) > 1 else f"{(last - first).mean():.4f}"
        best = np.mean([1 - row["latency_ps"] / row["all_main_ps"] for row in several])
        table.add(
            f"`{program}`",
            f"`{agent}`",
            saved(several[0], "greedy_ps"),
            saved(several[0], "xla_ps"),
            f"{first.mean():.4f}",
            f"{last.mean():.4f}",
            gained if isinstance(gained, str) else f"{gained:.4f}",
            f"{best:.4f}",
        )
    return table


def over_xla(rows: list[ex.Row]) -> tuple[ex.Table, dict[str, dict[str, float]]]:
    """Returns the table, and the speed-up of each agent by program."""
    by_agent = ex.grouped([row for row in rows if "updates=0" not in row["agent"]], "agent")
    gains: dict[str, dict[str, float]] = {}
    for agent, several in by_agent.items():
        for program, own in ex.grouped(several, "program").items():
            gains.setdefault(program, {})[agent] = mean_of(own, COMPILER)
    table = ex.Table(["program", *(f"`{agent}`" for agent in by_agent)])
    for program, found in gains.items():
        table.add(f"`{program}`", *(f"{found[agent]:.4f}" for agent in by_agent))
    for name, text in {
        "geometric mean": lambda own: f"{mean_of(own, COMPILER):.4f}",
        "better than XLA by 0.1 %": lambda own: improved(own),
        "greatest": lambda own: f"{max(row[COMPILER] for row in own):.4f}",
        "better one of it and XLA, mean": lambda own: f"{mean_of(own, COMPILER, least=1):.4f}",
        "geometric mean, calibrated": lambda own: f"{mean_of(own, CALIBRATED):.4f}",
    }.items():
        table.add(name, *(text(several) for several in by_agent.values()))
    return table, gains


def mean_of(rows: list[ex.Row], key: str, least: float = 0.0) -> float:
    known = [max(least, row[key]) for row in rows if row[key] is not None]
    return math.exp(np.mean(np.log(known))) if known else math.nan


def improved(rows: list[ex.Row]) -> str:
    means = [mean_of(own, COMPILER) for own in ex.grouped(rows, "program").values()]
    return f"{sum(one > 1.001 for one in means)} of {len(means)}"


def panels(rows: list[ex.Row], seconds: float) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """The mean over the seeds in 30 pieces of the time, by program and agent."""
    drawn: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for (program, agent), several in ex.grouped(rows, "program", "agent").items():
        curve = []
        for number in range(30):
            found = np.array([piece(row, number, 30, seconds) for row in several])
            if not np.isnan(found).all():
                curve.append((seconds * (number + 0.5) / 30, float(np.nanmean(found))))
        drawn.setdefault(program, {})[agent] = curve
    for program, curves in drawn.items():
        one = next(row for row in rows if row["program"] == program)
        for name in ("xla", "greedy"):
            level = 1 - one[f"{name}_ps"] / one["all_main_ps"]
            curves[name] = [(0.0, level), (seconds, level)]
    return drawn


def main(
    bench: ex.Bench,
    *programs: str,
    seconds: float = 180,
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4),
    agents: tuple[str, ...] = AGENTS,
    curves: str | None = None,
    bars: str | None = None,
) -> int:
    grid = ex.Grid(seed=seeds, agent=agents, program=programs or PROGRAMS)
    rows = bench.run(measure, grid, settings={"seconds": seconds}, pinned=True)
    print(learning(rows), end="\n\n")
    table, gains = over_xla(rows)
    if gains:
        print(table)
        if bars is not None:
            plots.save_bars(bars, gains, "XLA's latency over the plan's")
    if curves is not None:
        ylabel = "saved of the all-main latency"
        plots.save_learning(curves, panels(rows, seconds), "seconds", ylabel)
    return 0 if all(row["valid"] for row in rows) else 1


if __name__ == "__main__":
    ex.main(main)
