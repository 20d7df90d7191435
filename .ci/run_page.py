"""Runs the shell and Python blocks of a page of the documentation, through a command.

run_page.py PAGE COMMAND [ARGUMENT...]: a shell block is `COMMAND ARGUMENT... bash -c BLOCK`, a
Python block `COMMAND ARGUMENT... python -c BLOCK`. A shell block with a `text` block behind it has
to print that.
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "python"))
from doc_blocks import blocks_of

SHELLS = {"sh": ["bash", "-euo", "pipefail", "-c"], "python": ["python", "-c"]}


def main() -> None:
    page, *command = sys.argv[1:]
    blocks = blocks_of(pathlib.Path(page).resolve())
    ran = 0
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        if block.kind not in SHELLS or block.reason is not None:
            continue
        done = subprocess.run(
            [*command, *SHELLS[block.kind], block.text], stdout=subprocess.PIPE, text=True
        )
        place = f"{block.page}:{block.line}"
        if done.returncode != 0:
            raise SystemExit(f"release: {place} failed with status {done.returncode}")
        if after is not None and after.is_output_of(block):
            printed = [line.rstrip() for line in done.stdout.splitlines()]
            if printed != after.text.splitlines():
                raise SystemExit(f"release: {place} doesn't print what it says:\n{done.stdout}")
        ran += 1
    if not ran:
        raise SystemExit(f"release: {page} has no block to run")
    print(f"{page}: {ran} blocks ran")


if __name__ == "__main__":
    main()
