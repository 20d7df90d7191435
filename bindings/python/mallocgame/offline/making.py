"""Games of many levels, played side by side and kept."""

import contextlib
import dataclasses
import os
import pathlib
from collections.abc import Callable, Sequence

from mallocgame._core import Observer
from mallocgame._jobs import run_jobs
from mallocgame.errors import InvalidInputError
from mallocgame.level_sets import Level
from mallocgame.offline.episodes import (
    BEHAVIOURS,
    Behaviour,
    Episode,
    play_game,
    runs_of,
    settings_named,
)
from mallocgame.offline.numpy_files import check_fits, read_about, read_episodes, write_numpy


def make_dataset(
    on: Sequence[Level],
    folder: str | os.PathLike[str],
    behaviours: Sequence[str] = tuple(BEHAVIOURS),
    seeds: int = 1,
    *,
    observation: str = "compact",
    jobs: int = 1,
    done: Callable[[str], object] = lambda level: None,
) -> None:
    """Plays levels as play_games does, with greedy playing on, and writes as write_numpy does.

    A level is written as soon as its games are played. Games that the folder has already are not
    played again, so that interrupted, it goes on where it was when it is called again.

    on: levels of one split. jobs: processes that work side by side; what is written doesn't depend
    on it. done: is called with the name of each level.

    InvalidInputError: as play_games and write_numpy; the folder has another program under the name
    of a level, or games played on by others than greedy. MallocGameError: a process ended.
    FileAccessError.
    """
    folder, runs, settings = (
        pathlib.Path(folder),
        runs_of(behaviours, seeds),
        settings_named(observation),
    )
    if folder.exists() and not folder.is_dir():
        raise InvalidInputError(f"{folder}: is no folder")
    if jobs < 1:
        raise InvalidInputError(f"jobs: found {jobs}, allowed: 1 and above")
    if on:  # Said before anything is played.
        game = on[0].game()
        check_fits(folder, Observer(game, settings).size, game.num_actions)
    tasks = []
    for level in on:
        there = _there(level, folder / f"{level.name}.npz")
        missing = [run for run in runs if (run[0].name, run[1]) not in there]
        if missing:
            tasks.append(_Task(level, missing, settings))
        else:
            done(level.name)
    processes = 0 if jobs == 1 else jobs
    with contextlib.closing(run_jobs(_play, tasks, processes)) as played:
        for task, episodes in played:
            path = folder / f"{task.level.name}.npz"
            if path.exists():
                kept = {(one.behaviour, one.seed): one for one in read_episodes(path)}
                kept |= {(one.behaviour, one.seed): one for one in episodes}
                episodes = list(kept.values())
            write_numpy(episodes, folder)
            done(task.level.name)


def _there(level: Level, path: pathlib.Path) -> set[tuple[str, int]]:
    """Returns which behaviours and seeds a file has of a level."""
    own = read_about(path)["episodes"] if path.exists() else []
    fingerprint = level.features.get("fingerprint")
    for one in own:
        if fingerprint not in (None, one["fingerprint"]) or one["continuation"] != "greedy":
            raise InvalidInputError(
                f"{path}: found games of program {one['fingerprint']} that {one['continuation']} "
                f"plays on, allowed: of {fingerprint}, greedy; give another folder"
            )
    return {(one["behaviour"], one["seed"]) for one in own}


@dataclasses.dataclass(frozen=True)
class _Task:
    """The games that are to be played of a level."""

    level: Level
    runs: list[tuple[Behaviour, int]]
    settings: dict[str, int]


def _play(task: _Task) -> list[Episode]:
    game = task.level.game()
    return [
        play_game(task.level.name, game, one, seed, task.settings, None) for one, seed in task.runs
    ]
