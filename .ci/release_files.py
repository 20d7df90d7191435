"""What .ci/release makes of a repaired wheel, and what it writes about the files of a release.

release_files.py split WHEEL OUT: writes the wheel of mallocgame to OUT, which needs no Torch, and
that of mallocgame-agents with the extension which is linked with it, if WHEEL has that. Both say
which code of others is inside and bring its licences.

release_files.py describe OUT: writes a bill of materials in CycloneDX and SHA-256 sums.

release_files.py sizes OUT: tells what takes the space in the wheels of mallocgame, and fails if one
is too large.
"""

import argparse
import ast
import datetime
import email.message
import email.parser
import email.policy
import hashlib
import importlib.metadata
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
import zipfile
from typing import NamedTuple

AGENTS = "mallocgame-agents"
AGENTS_BUILD = "mallocgame/_agents_build.py"
# The Torch that .ci/release links the agents with.
_TORCH = pathlib.Path(__file__).resolve().parents[1] / "build/release/torch"
LARGEST = 8_500_000  # bytes of a wheel of mallocgame
LICENSE = "Apache-2.0"
# The licences of the code of others, by source package. One that isn't here stops the release, so
# that somebody reads its licence first.
LICENSES = {
    "abseil": "Apache-2.0",
    "jaxlib": "Apache-2.0",
    "libzstd": "BSD-3-Clause",
    "nlohmann-json3": "MIT",
    "protobuf": "BSD-3-Clause",
    "pybind11": "BSD-3-Clause",
    "torch": "BSD-3-Clause",
}


class Part(NamedTuple):
    """Code of others that is inside a file."""

    name: str
    version: str
    purl: str
    license_file: pathlib.Path

    @property
    def license(self) -> str:
        if self.name not in LICENSES:
            raise SystemExit(f"release: {self.name} is inside, and LICENSES doesn't name it")
        return LICENSES[self.name]


def debian_part(package: str) -> Part:
    """Returns the part that comes from an installed Debian package."""
    fields = "${source:Package} ${source:Version} ${Architecture} ${Version}"
    name, version, architecture, built = _output("dpkg-query", "-W", "-f", fields, package).split()
    package = package.partition(":")[0]
    return Part(
        name,
        version,
        f"pkg:deb/debian/{package}@{built}?arch={architecture}",
        pathlib.Path("/usr/share/doc", package, "copyright"),
    )


def python_part(name: str, folder: pathlib.Path | None = None) -> Part:
    """Returns the part that comes from a Python package, in `folder` if that is given."""
    found = importlib.metadata.distributions(name=name, path=[str(folder)] if folder else sys.path)
    distribution = next(iter(found))
    named = {"LICENSE", "LICENSE.txt"}
    licenses = [file for file in distribution.files or () if file.name in named]
    shortest = min(licenses, key=lambda file: len(file.parts))
    version = distribution.version.partition("+")[0]
    return Part(name, version, f"pkg:pypi/{name}@{version}", pathlib.Path(str(shortest.locate())))


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Unpacked:
    """The folder of an unpacked wheel."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        (self.info,) = folder.glob("*.dist-info")
        parser = email.parser.Parser(policy=_POLICY)
        self.metadata = parser.parsestr((self.info / "METADATA").read_text(encoding="utf-8"))

    def names(self) -> list[str]:
        files = (file for file in self.folder.rglob("*") if file.is_file())
        return [file.relative_to(self.folder).as_posix() for file in files]

    def pack(self, out: pathlib.Path) -> None:
        (self.info / "METADATA").write_text(self.metadata.as_string(), encoding="utf-8")
        out.mkdir(parents=True, exist_ok=True)
        _output(sys.executable, "-m", "wheel", "pack", str(self.folder), "--dest-dir", str(out))

    def add_parts(self, parts: list[Part]) -> None:
        """Brings the licences of code of others, and names them."""
        for part in parts:
            file = self.info / "licenses" / part.name / part.license_file.name
            file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(part.license_file, file)
            self.metadata["License-File"] = f"{part.name}/{part.license_file.name}"
        del self.metadata["License-Expression"]
        licenses = sorted({LICENSE, *(part.license for part in parts)})
        self.metadata["License-Expression"] = " AND ".join(licenses)


# As the field's tools write it: lines aren't folded, and text is UTF-8.
_POLICY = email.policy.EmailPolicy(
    utf8=True, mangle_from_=False, max_line_length=0, message_factory=email.message.Message
)


def split(wheel: pathlib.Path, out: pathlib.Path) -> None:
    """Writes the wheels of mallocgame, and of its agents, that a repaired wheel comes to."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary, "mallocgame")
        _output(sys.executable, "-m", "wheel", "unpack", str(wheel), "--dest", str(folder))
        base = Unpacked(next(folder.iterdir()))
        wheels = [base]
        if AGENTS_BUILD in base.names():
            wheels.append(take_agents(base, pathlib.Path(temporary, "agents")))
        version = base.metadata["Version"]
        base.metadata["Requires-Dist"] = f'{AGENTS}=={version}; extra == "agents"'
        for unpacked in wheels:
            unpacked.add_parts(parts_of(unpacked.names()))
            unpacked.pack(out)


def take_agents(base: Unpacked, folder: pathlib.Path) -> Unpacked:
    """Moves what needs Torch from the unpacked wheel of mallocgame to one of its own."""
    name = AGENTS.replace("-", "_")
    version = base.metadata["Version"]
    torch = torch_of((base.folder / AGENTS_BUILD).read_text())
    extra = [need for need in base.metadata.get_all("Requires-Dist") if "torch==" in need]
    if [need.partition(";")[0].strip() for need in extra] != [f"torch=={torch}"]:
        raise SystemExit(f"release: linked with Torch {torch}, but pyproject.toml has: {extra}")

    top = folder / f"{name}-{version}"
    info = top / f"{name}-{version}.dist-info"
    shutil.copytree(base.info / "licenses", info / "licenses")
    shutil.copyfile(base.info / "WHEEL", info / "WHEEL")
    (top / "mallocgame").mkdir()
    for file in base.folder.glob("mallocgame/_agents*"):
        shutil.move(file, top / "mallocgame" / file.name)
    metadata = email.message.Message(policy=_POLICY)
    metadata["Metadata-Version"] = base.metadata["Metadata-Version"]
    metadata["Name"] = AGENTS
    metadata["Version"] = version
    metadata["Summary"] = "The learning agents of mallocgame, which need Torch"
    metadata["License-File"] = "LICENSE"
    metadata["Requires-Python"] = base.metadata["Requires-Python"]
    # The extension shares types and libraries with that of mallocgame, and Torch's C++ interface
    # differs between versions.
    metadata["Requires-Dist"] = f"mallocgame=={version}"
    metadata["Requires-Dist"] = f"torch=={torch}"
    metadata["Description-Content-Type"] = "text/markdown"
    metadata.set_payload(
        "The compiled part of `mallocgame.agents`, for exactly this version of mallocgame and of "
        "Torch.\n`pip install 'mallocgame[agents]'` installs it.\n"
    )
    (info / "METADATA").write_text(metadata.as_string(), encoding="utf-8")
    return Unpacked(top)


def torch_of(agents_build: str) -> str:
    """Returns the Torch that _agents_build.py names."""
    (assigned,) = (node for node in ast.parse(agents_build).body if isinstance(node, ast.Assign))
    return ast.literal_eval(assigned.value)


def parts_of(names: list[str]) -> list[Part]:
    """Returns which code of others is inside a wheel that has files of these names."""
    # What headers bring is compiled into the extensions.
    parts = [debian_part("libabsl-dev"), python_part("pybind11")]
    if AGENTS_BUILD in names:
        parts.append(python_part("torch", _TORCH))
    else:
        parts += [debian_part("nlohmann-json3-dev"), python_part("jaxlib")]
    # auditwheel puts eight digits of a hash behind the name of a library.
    libraries = [
        f"*/{re.sub(r'-[0-9a-f]{8}(?=[.]so)', '', name.rpartition('/')[2])}"
        for name in names
        if name.startswith("mallocgame.libs/")
    ]
    if libraries:
        owners = _output("dpkg-query", "-S", *libraries).splitlines()
        parts += map(debian_part, sorted({owner.partition(": ")[0] for owner in owners}))
    # A library and the headers of it are one part.
    return [part for _, part in sorted({part.name: part for part in parts}.items())]


def parts_of_file(file: pathlib.Path) -> list[Part]:
    """Returns which code of others is inside a file of a release."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            return parts_of(wheel.namelist())
    if file.suffix == ".deb":
        return [debian_part(f"{name}-dev") for name in ("libabsl", "libprotobuf", "nlohmann-json3")]
    return []


def describe(out: pathlib.Path) -> None:
    """Writes the bill of materials and the SHA-256 sums of the files in a folder."""
    # Only this step needs it.
    from cyclonedx.model import HashAlgorithm, HashType
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.model.license import DisjunctiveLicense
    from cyclonedx.output.json import JsonV1Dot6
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator
    from packageurl import PackageURL

    (sdist,) = out.glob("*.tar.gz")
    release = sdist.name.removesuffix(".tar.gz")
    bill = out / f"{release}.cdx.json"
    files = sorted(file for file in out.iterdir() if file.suffix in (".whl", ".gz", ".deb"))
    own = [DisjunctiveLicense(id=LICENSE)]
    name, _, version = release.partition("-")
    root = Component(name=name, version=version, bom_ref=release, licenses=own)
    # Neither chance nor the clock is in it, so that the same files have the same bill.
    digests = "".join(map(_sha256, files))
    made = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.UTC)
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_OID, digests))
    bom.metadata.timestamp = made
    bom.metadata.component = root
    known: dict[str, Component] = {}
    components = []
    for file in files:
        component = Component(
            name=file.name,
            bom_ref=file.name,
            version=version,
            type=ComponentType.FILE,
            licenses=own,
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=_sha256(file))],
        )
        inside = []
        for part in parts_of_file(file):
            known.setdefault(
                part.purl,
                Component(
                    name=part.name,
                    version=part.version,
                    type=ComponentType.LIBRARY,
                    licenses=[DisjunctiveLicense(id=part.license)],
                    purl=PackageURL.from_string(part.purl),
                    bom_ref=part.purl,
                ),
            )
            inside.append(known[part.purl])
        bom.register_dependency(component, inside)
        components.append(component)
    bom.components.update(components, known.values())
    bom.register_dependency(root, components)
    text = JsonV1Dot6(bom).output_as_string(indent=2)
    if wrong := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise SystemExit(f"release: the bill of materials isn't valid: {wrong}")
    bill.write_text(text + "\n", encoding="utf-8")
    sums = [f"{_sha256(file)}  {file.name}\n" for file in [*files, bill]]
    (out / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")


def _sha256(file: pathlib.Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


# What a wheel's space goes to, by the first pattern that fits.
_KINDS = {
    "levels": r"mallocgame/level_sets/bundled/",
    "programs": r"mallocgame/programs/.*\.mgp",
    "extension": r"mallocgame/_core\..*\.so",
    "Abseil and Protobuf": r"mallocgame\.libs/",
    "Python, page and licences": r"",
}


def sizes(out: pathlib.Path) -> None:
    """Tells what takes the space in the wheels of mallocgame."""
    for file in sorted(out.glob("mallocgame-*.whl")):
        with zipfile.ZipFile(file) as wheel:
            members = wheel.infolist()
        parts = dict.fromkeys(_KINDS, 0)
        for member in members:
            kind = next(kind for kind, name in _KINDS.items() if re.match(name, member.filename))
            parts[kind] += member.compress_size
        size = file.stat().st_size
        told = ", ".join(f"{kind} {bytes_ / 1e6:.2f}" for kind, bytes_ in parts.items())
        print(f"{file.name}: {size / 1e6:.2f} MB ({told})")
        if size > LARGEST:
            raise SystemExit(f"release: {file.name} is larger than {LARGEST / 1e6:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("split")
    one.add_argument("wheel", type=pathlib.Path)
    for command in (one, commands.add_parser("describe"), commands.add_parser("sizes")):
        command.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.command == "split":
        split(arguments.wheel, arguments.out)
    elif arguments.command == "describe":
        describe(arguments.out)
    else:
        sizes(arguments.out)


if __name__ == "__main__":
    main()
