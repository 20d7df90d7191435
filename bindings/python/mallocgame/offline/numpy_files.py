"""Episodes as files of NumPy arrays: FOLDER/LEVEL.npz has those of a level, one after the other.

Each file says all of itself: what its episodes are, and of which versions.
"""

import io
import json
import os
import pathlib
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from mallocgame._core import OBSERVATION_VERSION, RULES_VERSION, read_file, write_file
from mallocgame.errors import InvalidInputError, MissingFileError
from mallocgame.offline.episodes import ARRAYS, FACTS, Episode

_VERSIONS = {"format": 3, "rules": RULES_VERSION, "observation": OBSERVATION_VERSION}
_DAMAGE = (ValueError, KeyError, TypeError, IndexError, EOFError, zipfile.BadZipFile)


def write_numpy(episodes: Iterable[Episode], folder: str | os.PathLike[str]) -> None:
    """Writes a compressed .npz for each level.

    What the folder has of these levels is replaced, what it has of others stays. The same episodes
    give the same bytes. InvalidInputError: episodes differ in the sizes of observations or actions,
    also from what the folder has, or the folder is of other rules; a level's name can't be that of
    a file. FileAccessError.
    """
    folder = pathlib.Path(folder)
    of_level: dict[str, list[Episode]] = {}
    for episode in episodes:
        if (
            episode.level in ("", ".", "..")
            or pathlib.PurePath(episode.level).name != episode.level
        ):
            raise InvalidInputError(f"level '{episode.level}': can't be the name of a file")
        of_level.setdefault(episode.level, []).append(episode)
    sizes = {
        (one.observations.shape[1], one.masks.shape[1]) for own in of_level.values() for one in own
    }
    if len(sizes) > 1:
        raise InvalidInputError(f"{folder}: found episodes of sizes {sorted(sizes)}, allowed: one")
    for size, actions in sizes:
        check_fits(folder, size, actions)
    folder.mkdir(parents=True, exist_ok=True)
    for level, own in of_level.items():
        write_file(folder / f"{level}.npz", _pack(own))


def read_numpy(
    folder: str | os.PathLike[str], only: Sequence[str] | None = None
) -> Iterator[Episode]:
    """Returns the episodes of a folder one after the other, level by level in order of their names.

    only: names of levels; None is all of them. InvalidInputError: something is damaged or of
    another version, or the folder lacks one of the levels. MissingFileError: it has none.
    """
    folder = pathlib.Path(folder)
    there = {path.stem: path for path in _files(folder)}
    if not there:
        raise MissingFileError(f"{folder}: there is no offline data; `mallocgame offline` makes it")
    for name in only or ():
        if name not in there:
            raise InvalidInputError(f"{folder}: found no level '{name}'")
    names = there if only is None else sorted(set(only))
    return (episode for name in names for episode in read_episodes(there[name]))


def read_about(path: pathlib.Path) -> dict[str, Any]:
    """Returns what a file says of itself: `size`, `actions`, and the `episodes`, each as FACTS.

    InvalidInputError: it is damaged or of another version.
    """
    try:
        with np.load(io.BytesIO(read_file(path)), allow_pickle=False) as file:
            about: dict[str, Any] = json.loads(str(file["about"]))
        found = {name: about[name] for name in _VERSIONS}
        if not all({*FACTS, "decisions"} <= {*one} for one in about["episodes"]):
            raise KeyError("facts of an episode")
    except _DAMAGE as error:
        raise InvalidInputError(f"{path}: damaged, or no offline data ({error!r})") from None
    for name, value in _VERSIONS.items():
        if found[name] != value:
            raise InvalidInputError(
                f"{path}: found {name} {found[name]}, allowed: {value}; make the data anew in "
                "another folder"
            )
    return about


def read_episodes(path: pathlib.Path) -> list[Episode]:
    facts = read_about(path)["episodes"]
    try:
        with np.load(io.BytesIO(read_file(path)), allow_pickle=False) as file:
            arrays = {name: file[name] for name in (*ARRAYS, "final_observations")}
        ends = np.cumsum([one["decisions"] for one in facts])
        if any(len(arrays[name]) != ends[-1] for name in ARRAYS):
            raise ValueError("arrays of other lengths than the episodes")
        parts: dict[str, Any] = {name: np.split(arrays[name], ends[:-1]) for name in ARRAYS}
        return [
            Episode(
                final_observation=arrays["final_observations"][i],
                **{name: parts[name][i] for name in ARRAYS},
                **{name: one[name] for name in FACTS},
            )
            for i, one in enumerate(facts)
        ]
    except _DAMAGE as error:
        raise InvalidInputError(f"{path}: damaged ({error!r})") from None


def check_fits(folder: pathlib.Path, size: int, actions: int) -> None:
    """InvalidInputError: a folder has episodes of other sizes, or of another version."""
    about = next((read_about(path) for path in _files(folder)), None)
    for name, value in {"size": size, "actions": actions}.items():
        if about is not None and about[name] != value:
            raise InvalidInputError(
                f"{folder}: found {name} {about[name]}, allowed: {value}, that of the episodes; "
                "give another folder"
            )


def _files(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(folder.glob("*.npz"))


def _pack(episodes: Sequence[Episode]) -> bytes:
    arrays = {name: np.concatenate([getattr(one, name) for one in episodes]) for name in ARRAYS}
    arrays["final_observations"] = np.stack([one.final_observation for one in episodes])
    about = _VERSIONS | {
        "size": arrays["observations"].shape[1],
        "actions": arrays["masks"].shape[1],
        "episodes": [
            {name: getattr(one, name) for name in FACTS} | {"decisions": one.decisions}
            for one in episodes
        ],
    }
    arrays["about"] = np.array(json.dumps(about))
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # they are no keywords of its own
    return file.getvalue()
