"""Puts a piece of one's own into XLA's allocator: laboratory.py [PROGRAM...]

The piece picks prefetch begins with an eye on fragmented space. `mallocgame lab laboratory:PIECES`
judges it with a table, in the folder of this file.
"""

import sys

from mallocgame import laboratory
from mallocgame.programs import suite


def unbroken(question: laboratory.BeginsQuestion) -> list[int]:
    """Starts from that of XLA's first ten begins which finds free memory in the largest pieces."""

    def broken(begin: int) -> float:
        free = question.free(begin, question.held_until)
        sizes = free[:, 1] - free[:, 0]
        return 1 - sizes.max(initial=0) / max(1, sizes.sum())

    begins = question.by_xla()[:10]
    return list(question.by_xla(min(begins, key=broken))) if len(begins) else []


PIECES = laboratory.Pieces(begins=unbroken)

if __name__ == "__main__":
    trials = laboratory.judge(PIECES, sys.argv[1:] or suite("contended"))
    for trial in trials:
        print(f"{trial.program}: {trial.ratio:.4f} of XLA's latency")
    total = laboratory.summarize(trials)
    print(f"geometric mean {total.ratio:.4f}, 95 % between {total.low:.4f} and {total.high:.4f}")
