"""What actors are worth to EGRL: the bytes that they are sent and send, and who has how much to do.

docs/results/egrl.md has what follows from its table.

    python benchmarks/quality/egrl_actors.py [--rounds 40]

One agent is trained on the ten workloads of egrl_gap.py, with one thread. Generations are made from
their assignments, as actors make them. The table has the means over all generations of the second
half. Seconds are CPU seconds.
"""

import time

import numpy as np
from egrl_gap import HIERARCHY, LEARNED  # type: ignore[import-not-found]
from placement import problem_of  # type: ignore[import-not-found]

import mallocgame as mg
from mallocgame import experiments as ex
from mallocgame._torch import torch_module


def measured(problems: list[mg.placement.Placement], rounds: int) -> np.ndarray:
    """[generations, 5]: bytes of networks, assignment and harvest, and both kinds of seconds."""
    module = torch_module()
    trainer = module.EgrlTrainer(problems, {}, 0, 1)
    rows = []
    for _ in range(rounds):
        weights = trainer.weights()
        for number, problem in enumerate(problems):
            assignment = trainer.assign(number)
            begin = time.process_time()
            harvest = module.egrl_harvest(problem, weights, assignment, 1)
            made = time.process_time()
            trainer.step(harvest)
            learned = time.process_time()
            sizes = len(weights), len(assignment), len(harvest)
            rows.append((*sizes, made - begin, learned - made))
    return np.array(rows)


def main(*, rounds: int = 40) -> None:
    rows = measured([problem_of(HIERARCHY, name) for name in LEARNED], rounds)
    mean = rows[len(rows) // 2 :].mean(axis=0)
    labels = (
        "bytes of the networks, which are sent once for a round",
        "bytes of its assignment",
        "bytes of its harvest",
        "seconds of an actor, which makes its maps",
        "seconds of the learner, which takes them and learns",
    )
    table = ex.Table(["a generation", ""])
    for label, value in zip(labels, mean, strict=True):
        table.add(label, f"{value:.4f}" if value < 1 else f"{value:,.0f}")
    print(table)


if __name__ == "__main__":
    ex.main(main)
