"""Prints what mallocgame[EXTRA] needs, a requirement a line, as pyproject.toml has it.

requirements.py [EXTRA | --build]: an extra may name others as mallocgame[OTHER,...]. Without one,
what everybody needs. --build: what a build of the package needs.
"""

import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = CONFIG["project"]
EXTRAS = PROJECT["optional-dependencies"]


def requirements(extra: str) -> list[str]:
    needed = []
    for requirement in EXTRAS[extra]:
        others = re.fullmatch(rf"{PROJECT['name']}\[(.+)\]", requirement)
        if others:
            needed += [need for name in others[1].split(",") for need in requirements(name)]
        else:
            needed.append(requirement)
    return needed


def main() -> None:
    extra = "".join(sys.argv[1:])
    if extra == "--build":
        print(*CONFIG["build-system"]["requires"], sep="\n")
        return
    if extra and extra not in EXTRAS:
        raise SystemExit(f"setup: found the extra '{extra}', allowed: {', '.join(EXTRAS)}")
    needed = [*PROJECT["dependencies"], *(requirements(extra) if extra else [])]
    print(*dict.fromkeys(needed), sep="\n")


if __name__ == "__main__":
    main()
