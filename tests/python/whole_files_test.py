"""What can't be written whole leaves what was there.

A limit of file sizes stands for a full disk.
"""

import subprocess
import sys

import pytest

WRITERS = {
    "table": "import os; from mallocgame._core import write_file; "
    "write_file(os.fsencode(path), b'x' * 20000)",
    "report": "from mallocgame._cli.train_egrl import _write_json; "
    "_write_json(path, {'a': 'x' * 20000})",
    "picture": "from mallocgame import plots; plots.save_curves(path, {'a': [(0.0, 1)]}, 'title')",
    "part of a capture": "import pathlib, random; from mallocgame.xla.captures import _write_gzip; "
    "_write_gzip(pathlib.Path(path), random.Random(0).randbytes(20000))",
}
CODE = """
import sys
from mallocgame.errors import FileAccessError

path = sys.argv[1]
try:
    {}
except FileAccessError as error:
    sys.exit(str(error))
"""


@pytest.mark.parametrize("writer", WRITERS)
def test_the_old_file_stays(tmp_path, writer):
    if writer == "picture":
        pytest.importorskip("matplotlib")
    path = tmp_path / "file"
    path.write_text("old")
    done = subprocess.run(
        ["prlimit", "--fsize=4096", sys.executable, "-c", CODE.format(WRITERS[writer]), path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"cannot write {path}: File too large\n" in done.stderr, done.stderr
    assert done.returncode == 1 and path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["file"]
