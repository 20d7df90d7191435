"""What the CMake config looks for, what the libraries are linked with, and what the Debian package
of them depends on are the same."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What find_package finds, and the Debian package that brings it. Threads come with a compiler.
BROUGHT_BY = {
    "absl": "libabsl-dev",
    "Protobuf": "libprotobuf-dev",
    "Threads": None,
    "ZLIB": "zlib1g-dev",
    "zstd": "libzstd-dev",
}
# Packages whose targets have another name before the colons.
FOUND_AS = {"protobuf": "Protobuf"}


def looked_for() -> set[str]:
    """Returns what the CMake config looks for."""
    config = (ROOT / "mallocgame/mallocgameConfig.cmake.in").read_text()
    # A tool that finds others, such as PkgConfig, is looked for too.
    return set(re.findall(r"^ *(?:find_|pkg_)\w+\((\w+)", config, re.MULTILINE))


def test_the_debian_package_depends_on_what_the_config_looks_for():
    install = (ROOT / "mallocgame/install.cmake").read_text()
    depends = install.partition("CPACK_DEBIAN_PACKAGE_DEPENDS")[2].partition("set(")[0]
    packages = set(re.findall(r"[a-z][a-z0-9.+-]*-dev|pkg-?conf\w*", depends))
    assert packages == {BROUGHT_BY[name] for name in looked_for()} - {None}


def test_the_config_looks_for_what_the_libraries_are_linked_with():
    """Also for what a library keeps private: as a static one it hands that on to whoever links."""
    linked = set()
    for file in (ROOT / "mallocgame").rglob("CMakeLists.txt"):
        # What is only needed to build a library no installed one is linked with.
        text = re.sub(r"\$<BUILD_INTERFACE:[^>]*>", "", file.read_text())
        for names in re.findall(r"link_libraries\(mallocgame_(?!protos)([^)]*)\)", text):
            linked |= {FOUND_AS.get(one, one) for one in re.findall(r"(\w+)::", names)}
    assert linked == looked_for()
