"""What a release is made of (.ci/release): how a wheel is split, and that the versions agree."""

import importlib.util
import pathlib
import subprocess
import sys
import tomllib
import zipfile
from email.parser import HeaderParser

import pytest
from conftest import SOURCE_ROOT

pytest.importorskip("wheel", reason="wheel isn't installed: pip install wheel")
_spec = importlib.util.spec_from_file_location(
    "release_files", SOURCE_ROOT / ".ci/release_files.py"
)
files = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(files)

TAGS = "cp311-cp311-manylinux_2_36_x86_64"
EXTENSION = "mallocgame/_agents.cpython-311-x86_64-linux-gnu.so"
METADATA = """\
Metadata-Version: 2.4
Name: mallocgame
Version: 1.2.3
License-Expression: Apache-2.0
License-File: LICENSE
Requires-Python: >=3.11
Requires-Dist: numpy>=1.24
Provides-Extra: agents
Requires-Dist: torch==2.13.0; extra == "agents"
Requires-Dist: tensorboard>=2.16; extra == "agents"

# Title

Text – with a dash.
"""


@pytest.fixture
def wheel(tmp_path) -> pathlib.Path:
    """A wheel of mallocgame with its agents, as auditwheel leaves one, but for its contents."""
    folder = tmp_path / "mallocgame-1.2.3"
    for name, content in {
        "mallocgame/__init__.py": "",
        "mallocgame/_core.cpython-311-x86_64-linux-gnu.so": "core",
        EXTENSION: "agents",
        "mallocgame/_agents.pyi": "stub",
        "mallocgame/_agents_build.py": 'TORCH = "2.13.0"\n',
        "mallocgame/agents/__init__.py": "",
        "mallocgame.libs/libother-01234567.so.1": "library",
        "mallocgame-1.2.3.dist-info/METADATA": METADATA,
        "mallocgame-1.2.3.dist-info/WHEEL": f"Wheel-Version: 1.0\nGenerator: a test\n"
        f"Root-Is-Purelib: false\nTag: {TAGS}\n",
        "mallocgame-1.2.3.dist-info/licenses/LICENSE": "our licence",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    pack(folder, tmp_path)
    return tmp_path / f"mallocgame-1.2.3-{TAGS}.whl"


def pack(folder: pathlib.Path, out: pathlib.Path) -> None:
    command = [sys.executable, "-m", "wheel", "pack", str(folder), "--dest-dir", str(out)]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def part(tmp_path) -> files.Part:
    (tmp_path / "copyright").write_text("their licence")
    return files.Part("protobuf", "3", "pkg:deb/debian/libother@3", tmp_path / "copyright")


@pytest.fixture
def halves(wheel, part, tmp_path, monkeypatch):
    """Both wheels that the wheel is split into, opened, the base first."""
    monkeypatch.setattr(files, "parts_of", lambda names: [part])
    files.split(wheel, tmp_path / "out")
    with (
        zipfile.ZipFile(tmp_path / "out" / wheel.name) as base,
        zipfile.ZipFile(tmp_path / f"out/mallocgame_agents-1.2.3-{TAGS}.whl") as agents,
    ):
        yield base, agents


def metadata_of(wheel: zipfile.ZipFile):
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return HeaderParser().parsestr(wheel.read(name).decode())


def modules_of(wheel: zipfile.ZipFile) -> set[str]:
    return {name for name in wheel.namelist() if ".dist-info/" not in name}


def test_each_file_is_in_one_wheel(wheel, halves):
    base, agents = map(modules_of, halves)
    assert agents == {EXTENSION, "mallocgame/_agents.pyi", "mallocgame/_agents_build.py"}
    with zipfile.ZipFile(wheel) as whole:
        assert base == modules_of(whole) - agents


def test_the_agents_need_this_version_and_their_torch(halves):
    base, agents = map(metadata_of, halves)
    assert agents["Name"] == "mallocgame-agents"
    assert agents.get_all("Requires-Dist") == ["mallocgame==1.2.3", "torch==2.13.0"]
    needs = base.get_all("Requires-Dist")
    assert [need for need in needs if "extra" not in need] == ["numpy>=1.24"]
    assert 'mallocgame-agents==1.2.3; extra == "agents"' in needs
    assert base.get_payload() == metadata_text()


def test_a_wheel_without_agents_is_one_wheel(wheel, part, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "parts_of", lambda names: [part])
    folder = tmp_path / "again"
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(folder / "mallocgame-1.2.3")
    for name in (EXTENSION, "mallocgame/_agents_build.py"):
        (folder / "mallocgame-1.2.3" / name).unlink()
    pack(folder / "mallocgame-1.2.3", folder)
    files.split(folder / wheel.name, tmp_path / "out")
    (made,) = (tmp_path / "out").iterdir()
    with zipfile.ZipFile(made) as base:
        needs = metadata_of(base).get_all("Requires-Dist")
    assert 'mallocgame-agents==1.2.3; extra == "agents"' in needs


def metadata_text() -> str:
    return METADATA.partition("\n\n")[2]


def test_both_bring_the_licences_of_what_is_inside(halves):
    for wheel in halves:
        metadata = metadata_of(wheel)
        assert metadata["License-Expression"] == "Apache-2.0 AND BSD-3-Clause"
        texts = {}
        for file in metadata.get_all("License-File"):
            (name,) = (name for name in wheel.namelist() if name.endswith(f"/licenses/{file}"))
            texts[file] = wheel.read(name).decode()
        assert texts == {"LICENSE": "our licence", "protobuf/copyright": "their licence"}


def test_another_torch_than_that_of_pyproject_is_refused(wheel, tmp_path):
    folder = tmp_path / "again"
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(folder / "mallocgame-1.2.3")
    (folder / "mallocgame-1.2.3/mallocgame/_agents_build.py").write_text('TORCH = "2.14.0"\n')
    pack(folder / "mallocgame-1.2.3", folder)
    with pytest.raises(SystemExit, match=r"linked with Torch 2\.14\.0"):
        files.split(folder / wheel.name, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_part_whose_licence_nobody_read_is_refused(part):
    with pytest.raises(SystemExit, match="unread is inside"):
        _ = part._replace(name="unread").license


def test_a_wheel_that_is_too_large_is_refused(wheel, monkeypatch, capsys):
    files.sizes(wheel.parent)
    assert wheel.name in capsys.readouterr().out
    monkeypatch.setattr(files, "LARGEST", 100)
    with pytest.raises(SystemExit, match="is larger than"):
        files.sizes(wheel.parent)


def test_the_agents_extra_asks_for_the_torch_of_the_build():
    build = pytest.importorskip("mallocgame._agents_build", reason="built without Torch")
    project = tomllib.loads((SOURCE_ROOT / "pyproject.toml").read_text())
    assert f"torch=={build.TORCH}" in project["project"]["optional-dependencies"]["agents"]
