"""EGRL, its parts and other searches on the three workloads of Khadka et al.

It makes the tables and the picture of docs/results/egrl.md on ResNet-50, ResNet-101 and BERT.

    python benchmarks/quality/egrl_workloads.py FOLDER [--methods M ...] [--programs P ...]
        [--seeds 5] [--evaluations 1000] [--picture PNG] [--maps PNG] [--jobs 1 | --ray ADDRESS]

Keeps every run in FOLDER and goes on from there. The hierarchy is nnp_i_12_engines. The tables
have, over the stronger of two compilers: the best map of each method; who found a better map than
all before, in all seeds together; and what the trained agents make of the other two programs
without training on them, by the policy's and the best network's most likely maps alone and with 32
maps that the critics chose; and what the best maps do beside the compiler's. The first picture has
the best map so far over the maps graded, the mean of the seeds and all that lies between the least
and the greatest; the second one all best maps by their two principal components, those with most
variance. Each run uses one thread.
"""

import pathlib
import time

import numpy as np
import placement  # type: ignore[import-not-found]

import mallocgame as mg
from mallocgame import agents, plots
from mallocgame import experiments as ex

HIERARCHY = "nnp_i_12_engines"
SEARCHES = ("greedy-dp", "random")
POINTS = 100  # of a curve
FINDERS = {
    "networks": "best_by_gnn",
    "chromosomes": "best_by_boltzmann",
    "policy gradient": "best_by_gradient",
    "refinements": "best_by_refining",
}


def measure(seed: int, program: str, method: str, evaluations: int) -> dict:
    problem = placement.problem_of(HIERARCHY, program)
    own: dict[str, object] = {}
    begin = time.process_time()
    if method in placement.AGENTS:
        trainer = agents.Egrl(problem, placement.AGENTS[method], seed, threads=1)
        last: dict[str, float] = {}
        trainer.train(evaluations, on_step=last.update)
        found, agent = trainer.best(), trainer.agent()
        own["found"] = {name: last[column] for name, column in FINDERS.items()}
        seconds = time.process_time() - begin
        others = [other for other in placement.PROGRAMS if other != program]
        own["placed"] = {other: transferred(agent, other) for other in others}
    else:
        found = problem.search(method, evaluations, seed, threads=1)
        seconds = time.process_time() - begin
    best = found.best_ps[:evaluations]
    places = np.linspace(0, len(best) - 1, POINTS).astype(int)
    slowest = placement.slow_ps(HIERARCHY, program)
    curve = [speed_up(program, int(ps) or slowest) for ps in best[places]]
    return own | {"cpu_seconds": seconds, "curve": curve, "map": found.map.tolist()}


def transferred(agent: agents.EgrlAgent, program: str) -> list[float]:
    """Without training: the likeliest maps alone, and with 32 that the critics chose."""
    return [speed_up(program, agent.place(at(program), samples).latency_ps) for samples in (0, 16)]


def at(program: str) -> mg.placement.Placement:
    return placement.problem_of(HIERARCHY, program)


def speed_up(program: str, latency_ps: int) -> float:
    """Over the faster of both compilers' maps."""
    first_come_ps = at(program).search("first-come", 1).latency_ps
    return min(at(program).baseline_ps, first_come_ps) / latency_ps


def asked(program: str, method: str, **_: object) -> dict[str, object]:
    return placement.inputs(HIERARCHY, program, method)


def results(rows: list[ex.Row], programs: tuple[str, ...]) -> ex.Table:
    table = ex.Table(["over the compiler", *programs, "mean", "CPU s a run"])
    for method, own in ex.grouped(rows, "method").items():
        by_program = ex.grouped(own, "program")
        ends = [np.array([run["curve"][-1] for run in by_program[one]]) for one in programs]
        mean = np.mean([each.mean() for each in ends])
        seconds = np.mean([run["cpu_seconds"] for run in own])
        table.add(f"`{method}`", *map(placement.spread, ends), f"{mean:.3f}", f"{seconds:.3g}")
    return table


def finders(rows: list[ex.Row]) -> ex.Table:
    table = ex.Table(["found a better map than all before", *FINDERS])
    for method, own in ex.grouped(rows, "method").items():
        if method in placement.AGENTS:
            sums = (sum(run["found"][name] for run in own) for name in FINDERS)
            table.add(f"`{method}`", *sums)
    return table


def transfer(rows: list[ex.Row], method: str, programs: tuple[str, ...]) -> ex.Table:
    table = ex.Table(["trained on", *(f"{one}, {how}" for one in programs for how in HOW)])
    for trained, own in ex.grouped(rows, "program").items():
        runs = [run for run in own if run["method"] == method]
        cells = []
        for one in programs:
            placed = np.array([run["placed"].get(one, [np.nan] * len(HOW)) for run in runs])
            cells += ["" if np.isnan(mean) else f"{mean:.3f}" for mean in placed.mean(axis=0)]
        table.add(f"`{trained}`", *cells)
    return table


HOW = ("policy alone", "34 maps")


def levels(rows: list[ex.Row], method: str, programs: tuple[str, ...]) -> ex.Table:
    """Where bytes lie in the best map of all seeds, by where the compiler has them."""
    names = at(programs[0]).level_names
    table = ex.Table(["MiB", "compiler's level", *(f"{method}: {name}" for name in names)])
    for program in programs:
        runs = [run for run in rows if (run["method"], run["program"]) == (method, program)]
        best = max(runs, key=lambda run: run["curve"][-1])
        lies, problem = at(program).rectify(np.array(best["map"], np.uint8)), at(program)
        for level, name in enumerate(names):
            of = problem.baseline_map == level
            moved = (problem.tensor_bytes[of & (lies == to)].sum() for to in range(len(names)))
            table.add(f"`{program}`", name, *(f"{total / 2**20:.1f}" for total in moved))
    return table


def habits(rows: list[ex.Row], methods: tuple[str, ...], programs: tuple[str, ...]) -> ex.Table:
    """What maps do: their bytes at each level, and how many edges of the graph stay at one level.

    An edge goes from an instruction to one that reads its result.
    """
    names = at(programs[0]).level_names
    table = ex.Table(["program", "map", *names, "edges at one level"])
    for program in programs:
        problem = at(program)
        maps = {"the compiler": [problem.baseline_map]} | {
            method: best_maps(rows, method, program) for method in methods
        }
        source, reader = problem.edge_index
        for method, own in maps.items():
            total = problem.tensor_bytes.sum()
            shares = [
                np.mean([problem.tensor_bytes[one == level].sum() / total for one in own])
                for level in range(len(names))
            ]
            stays = np.mean([one[source, ACTIVATIONS] == one[reader, ACTIVATIONS] for one in own])
            table.add(f"`{program}`", method, *(f"{share:.0%}" for share in (*shares, stays)))
    return table


def best_maps(rows: list[ex.Row], method: str, program: str) -> list[np.ndarray]:
    """The best map of each seed, as the chip would have it."""
    own = [run for run in rows if (run["method"], run["program"]) == (method, program)]
    return [at(program).rectify(np.array(run["map"], np.uint8)) for run in own]


ACTIVATIONS = 1  # of a node's two tensors, the other one being its weights


def draw_maps(
    path: pathlib.Path, rows: list[ex.Row], methods: tuple[str, ...], programs: tuple[str, ...]
) -> None:
    plots.check()
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        1, len(programs), figsize=(4 * len(programs), 3.4), layout="constrained", squeeze=False
    )
    for panel, program in zip(panels[0], programs, strict=True):
        problem = at(program)
        found = {method: best_maps(rows, method, program) for method in methods}
        every = np.array([problem.baseline_map, *(one for own in found.values() for one in own)])
        # A tensor counts by its bytes, and two levels are as far apart as any other two.
        places = (every[..., None] == np.arange(len(problem.level_names))).astype(float)
        places *= np.sqrt(problem.tensor_bytes)[..., None]
        centred = places.reshape(len(every), -1) - places.reshape(len(every), -1).mean(axis=0)
        left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
        x, y = (left[:, :2] * sizes[:2]).T
        panel.scatter(x[:1], y[:1], marker="*", s=160, color="black", label="the compiler")
        begin = 1
        for method, own in found.items():
            panel.scatter(x[begin:][: len(own)], y[begin:][: len(own)], s=28, label=method)
            begin += len(own)
        explained = (sizes[:2] ** 2).sum() / (sizes**2).sum()
        panel.set(title=program, xticks=[], yticks=[], xlabel=f"{explained:.0%} of the variance")
    panels[0][-1].legend(fontsize="x-small")
    figure.savefig(path, dpi=100)


def draw(
    path: pathlib.Path, rows: list[ex.Row], programs: tuple[str, ...], evaluations: int
) -> None:
    plots.check()
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        1, len(programs), figsize=(4 * len(programs), 3.2), layout="constrained", squeeze=False
    )
    graded = np.linspace(1, evaluations, POINTS)
    for panel, program in zip(panels[0], programs, strict=True):
        for method, own in ex.grouped(rows, "method").items():
            curves = np.array([run["curve"] for run in own if run["program"] == program])
            (line,) = panel.plot(graded, curves.mean(axis=0), label=method)
            panel.fill_between(
                graded, curves.min(axis=0), curves.max(axis=0), color=line.get_color(), alpha=0.15
            )
        panel.axhline(1, color="grey", linewidth=0.8)
        panel.set(title=program, xlabel="maps graded", ylim=(0.4, None))
    panels[0][0].set_ylabel("speed-up over the compiler")
    panels[0][-1].legend(fontsize="small")
    figure.savefig(path, dpi=100)


def main(
    bench: ex.Bench,
    *,
    methods: tuple[str, ...] = (*placement.AGENTS, *SEARCHES),
    programs: tuple[str, ...] = placement.PROGRAMS,
    seeds: tuple[int, ...] = tuple(range(5)),
    evaluations: int = 1000,
    picture: pathlib.Path | None = None,
    maps: pathlib.Path | None = None,
) -> None:
    grid = ex.Grid(seed=seeds, program=programs, method=methods)
    rows = bench.run(measure, grid, settings={"evaluations": evaluations}, inputs=asked)
    print(results(rows, programs), end="\n\n")
    print(finders(rows), end="\n\n")
    for method in (one for one in ("egrl", "paper") if one in methods):
        print(f"{method}:", transfer(rows, method, programs), sep="\n\n", end="\n\n")
        print(levels(rows, method, programs), end="\n\n")
    print(habits(rows, methods, programs))
    if picture is not None:
        draw(picture, rows, programs, evaluations)
    if maps is not None:
        draw_maps(maps, rows, methods, programs)


if __name__ == "__main__":
    ex.main(main)
