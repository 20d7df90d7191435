"""Measures what a search of MuZero is worth with the value of its network, and with rollouts.

    python benchmarks/quality/value_or_rollouts.py FOLDER --agent AGENT [--simulations 1,4,16]
                                                   [--most-seconds 60] [PROGRAM...]

AGENT is a checkpoint, such as examples/muzero_levels.py writes. On each program it plays one game
of its kind with so many simulations of each decision, whose leaves the network values
(rollout_share=0) or a rollout does (1), which plays on to the end of the game. Where a game took
longer than --most-seconds, more simulations are not tried. Prints the CPU seconds of each game, and
its latency over that of the best. Needs mallocgame[agents].
"""

import pathlib
import time

import mallocgame as mg
from mallocgame import agents
from mallocgame import experiments as ex

PROGRAMS = (
    "llama_3b_splash_prefill_2l_s1024.tpu_v6e",
    "moe_transformer_2l_b4_s128.tpu_v4i_16mib",
    "bert_base_b8_s384.tpu_v4i_16mib",
    "llama_draft_12l_b8_4words.tpu7x",
)
SHARES = {"value": 0, "rollouts": 1}


def measure(program: str, leaves: str, agent: str, simulations: list[int], most: float) -> dict:
    """Returns CPU seconds and latency of a game, by the number of simulations."""
    player = agents.MuZeroAgent.load(agent)
    game = mg.Game(mg.load_program(program), game=mg.FINE_GAME)
    found: dict[str, tuple[float, int]] = {}
    for count in simulations:
        begin = time.process_time()
        config = {"rollout_share": SHARES[leaves]}
        result = player.play(game, simulations=count, config=config)
        seconds = time.process_time() - begin
        found[str(count)] = seconds, result.report.latency_ps
        if seconds > most:
            break
    return {"accesses": game.program.counts["accesses"], "games": found}


def main(
    bench: ex.Bench,
    *programs: str,
    agent: pathlib.Path,
    simulations: tuple[int, ...] = (1, 4, 16),
    most_seconds: float = 60.0,
) -> None:
    settings = {"agent": str(agent), "simulations": list(simulations), "most": most_seconds}
    grid = ex.Grid(program=programs or PROGRAMS, leaves=SHARES)
    rows = bench.run(measure, grid, settings=settings)
    table = ex.Table(["program", "accesses", "leaves", "simulations", "CPU seconds", "over best"])
    for program, of_program in ex.grouped(rows, "program").items():
        best = min(ps for row in of_program for _, ps in row["games"].values())
        for row in of_program:
            for count, (seconds, latency_ps) in row["games"].items():
                ratio = f"{latency_ps / best:.4f}"
                cells = program, row["accesses"], row["leaves"], count, f"{seconds:.2f}", ratio
                table.add(*cells)
    print(table)


if __name__ == "__main__":
    ex.main(main)
