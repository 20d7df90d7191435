"""The code blocks of README.md and docs/, as tests and releases run them. It needs no package.

A block that can't be run says why in a comment before it, `<!-- not run: ... -->`. A `text` block
right behind a shell block is what it prints.
"""

import pathlib
import re
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>.*?) -->\n)?```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    kind: str
    text: str
    reason: str | None

    def is_output_of(self, block: "Block") -> bool:
        """Says whether this is what a block right before it prints."""
        behind = block.line + block.text.count("\n") + 3
        return self.page == block.page and self.kind == "text" and self.line == behind


def blocks_of(path: pathlib.Path) -> list[Block]:
    text = path.read_text()
    return [
        Block(
            path.relative_to(DOCS if path.is_relative_to(DOCS) else ROOT).as_posix(),
            text[: match.start("kind")].count("\n") + 1,
            match["kind"].split(" ")[0],
            match["text"],
            match["reason"],
        )
        for match in BLOCK.finditer(text)
    ]
