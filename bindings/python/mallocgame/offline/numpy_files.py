"""Episodes as files of NumPy arrays.

FOLDER/index.json    what is there, and what the columns of an observation are
FOLDER/LEVEL.npz     the episodes of a level, one after the other
"""

import io
import itertools
import json
import math
import os
import pathlib
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from mallocgame._core import OBSERVATION_VERSION, RULES_VERSION, read_file, write_file
from mallocgame.errors import InvalidInputError, MissingFileError
from mallocgame.games import GameOptions, PriorityGame, ScheduleGame, TimeGame
from mallocgame.observation import (
    access_features,
    action_features,
    candidate_features,
    layout,
    scalar_features,
    settings_of,
    unit_features,
)
from mallocgame.offline.episodes import ARRAYS, FACTS, OBSERVATIONS, Episode
from mallocgame.programs import decode

FORMAT = 2
INDEX = "index.json"


def write_numpy(episodes: Iterable[Episode], folder: str | os.PathLike[str]) -> None:
    """Writes a compressed .npz for each level, and index.json.

    What the folder has of these levels is replaced, what it has of others stays. The same episodes
    give the same bytes. InvalidInputError: episodes differ in the sizes of observations or actions,
    also from what the folder has, or the folder is of other rules; a level's name can't be that of
    a file. FileAccessError.
    """
    folder = pathlib.Path(folder)
    of_level: dict[str, list[Episode]] = {}
    for episode in episodes:
        of_level.setdefault(episode.level, []).append(episode)
    if not of_level:
        return
    first = next(iter(of_level.values()))[0]
    index = index_so_far(folder) or _new_index(first)
    for level, own in of_level.items():
        if level in ("", ".", "..") or pathlib.PurePath(level).name != level:
            raise InvalidInputError(f"level '{level}': can't be the name of a file")
        for episode in own:
            check_fits(index, folder, episode.observations.shape[1], episode.masks.shape[1])
    folder.mkdir(parents=True, exist_ok=True)
    for level, own in of_level.items():
        write_file(folder / f"{level}.npz", _pack(own))
        index["levels"][level] = _facts(own)
    index["levels"] = dict(sorted(index["levels"].items()))
    write_file(folder / INDEX, (json.dumps(index, indent=1) + "\n").encode())


def read_numpy(
    folder: str | os.PathLike[str], only: Sequence[str] | None = None
) -> Iterator[Episode]:
    """Returns the episodes of a folder one after the other, level by level in order of their names.

    only: names of levels; None is all of them. InvalidInputError: something is damaged, the
    observations are of another version, or the folder lacks one of the levels. MissingFileError.
    """
    folder = pathlib.Path(folder)
    index = load_index(folder)
    names = list(index["levels"])
    if only is not None:
        for name in only:
            if name not in index["levels"]:
                raise InvalidInputError(f"{folder}: found no level '{name}'")
        names = sorted(set(only))
    return (episode for name in names for episode in read_episodes(folder / f"{name}.npz"))


def _facts(episodes: Sequence[Episode]) -> list[dict[str, Any]]:
    """Returns what an index says of episodes."""
    return [
        {name: getattr(episode, name) for name in FACTS} | {"decisions": episode.decisions}
        for episode in episodes
    ]


def _pack(episodes: Sequence[Episode]) -> bytes:
    arrays = {name: np.concatenate([getattr(one, name) for one in episodes]) for name in ARRAYS}
    arrays["final_observations"] = np.stack([one.final_observation for one in episodes])
    # The file says all by itself, so that it can't disagree with an index of another time.
    arrays["facts"] = np.array(json.dumps(_facts(episodes)))
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # they are no keywords of its own
    return file.getvalue()


def read_episodes(path: pathlib.Path) -> list[Episode]:
    try:
        with np.load(io.BytesIO(read_file(path)), allow_pickle=False) as file:
            arrays = {name: file[name] for name in (*ARRAYS, "final_observations", "facts")}
        facts = json.loads(str(arrays["facts"]))
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
    except (ValueError, KeyError, TypeError, IndexError, EOFError, zipfile.BadZipFile) as error:
        raise InvalidInputError(f"{path}: damaged ({error!r})") from None


def _new_index(episode: Episode) -> dict[str, Any]:
    size, actions = episode.observations.shape[1], episode.masks.shape[1]
    return {
        "format": FORMAT,
        "rules": RULES_VERSION,
        "observation": OBSERVATION_VERSION,
        "size": size,
        "actions": actions,
        "parts": _parts(size, actions),
        "levels": {},
    }


def _games_of(actions: int) -> list[GameOptions]:
    """Returns the games that have so many actions."""
    if actions <= 4:
        return [TimeGame(paper_actions=actions == 3)]
    shown = {PriorityGame: actions, ScheduleGame: actions - 17}
    return [game(candidates=count // 5) for game, count in shown.items() if count % 5 == 0]


def _parts(size: int, actions: int) -> list[dict[str, Any]]:
    """Returns what an observation of a size consists of; nothing where that is not known."""
    for kind, game in itertools.product(OBSERVATIONS, _games_of(actions)):
        parts = layout(settings_of(kind, {}), game)
        if parts[-1].offset + math.prod(parts[-1].shape) != size:
            continue
        columns = {
            "accesses": access_features(),
            "candidates": candidate_features(),
            "units": unit_features(),
            "actions": action_features(game),
            "scalars": scalar_features(game),
        }
        return [
            part._asdict() | {"columns": [name for name, _ in columns.get(part.name, ())]}
            for part in parts
        ]
    return []


def load_index(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the index of a folder, for each level with what its episodes are.

    InvalidInputError: it is damaged, of another format, or its observations are of another version.
    MissingFileError.
    """
    path = pathlib.Path(folder) / INDEX
    try:
        text = decode(read_file(path))
    except MissingFileError:
        raise MissingFileError(
            f"{path}: there is no offline data; `mallocgame offline` writes it"
        ) from None
    try:
        index: dict[str, Any] = json.loads(text)
        if index["format"] != FORMAT:
            raise InvalidInputError(f"{path}: found format {index['format']}, allowed: {FORMAT}")
        if index["observation"] != OBSERVATION_VERSION:
            raise InvalidInputError(
                f"{path}: found observation {index['observation']}, allowed: "
                f"{OBSERVATION_VERSION}; make the data anew"
            )
        rows = [one for own in index["levels"].values() for one in own]
        if not {"rules", "size", "actions"} <= set(index) or not all(
            set(FACTS) <= set(one) for one in rows
        ):
            raise KeyError("rules, size, actions or facts of an episode")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"{path}: no index of offline data ({error!r})") from None
    return index


def index_so_far(folder: pathlib.Path) -> dict[str, Any] | None:
    """Returns the index of a folder; None where there is none yet."""
    return load_index(folder) if (folder / INDEX).exists() else None


def check_fits(index: dict[str, Any], folder: pathlib.Path, size: int, actions: int) -> None:
    for name, value in {"size": size, "actions": actions, "rules": RULES_VERSION}.items():
        if index[name] != value:
            raise InvalidInputError(
                f"{folder}: found {name} {index[name]}, allowed: {value}, that of the episodes; "
                "give another folder"
            )
