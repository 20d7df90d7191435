"""Games of many levels, played side by side and kept."""

import concurrent.futures
import contextlib
import functools
import multiprocessing
import os
import pathlib
import signal
from collections.abc import Callable, Generator, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from mallocgame._core import Observer
from mallocgame._levels import Level, levels
from mallocgame.errors import InvalidInputError, MallocGameError
from mallocgame.offline.episodes import (
    BEHAVIOURS,
    Behaviour,
    Episode,
    play_game,
    runs_of,
    settings_named,
)
from mallocgame.offline.numpy_files import check_fits, index_so_far, read_episodes, write_numpy


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
    index = index_so_far(folder)
    if index is not None and on:  # Said before anything is played.
        game = on[0].game()
        check_fits(index, folder, Observer(game, settings).size, game.num_actions)
    tasks = []
    for level in on:
        there = _there(index, level, folder)
        missing = [run for run in runs if (run[0].name, run[1]) not in there]
        if missing:
            tasks.append(_Task(level, missing, settings))
        else:
            done(level.name)
    with contextlib.closing(_played(tasks, jobs)) as played:
        for name, episodes in played:
            path = folder / f"{name}.npz"
            if index is not None and path.exists():
                kept = {(one.behaviour, one.seed): one for one in read_episodes(path)}
                kept |= {(one.behaviour, one.seed): one for one in episodes}
                episodes = list(kept.values())
            write_numpy(episodes, folder)
            done(name)


def _there(
    index: dict[str, Any] | None, level: Level, folder: pathlib.Path
) -> set[tuple[str, int]]:
    """Returns which behaviours and seeds the folder has of a level."""
    if index is None or not (folder / f"{level.name}.npz").exists():
        return set()
    own = index["levels"].get(level.name, [])
    fingerprint = level.features.get("fingerprint")
    for one in own:
        if fingerprint not in (None, one["fingerprint"]) or one["continuation"] != "greedy":
            raise InvalidInputError(
                f"{folder}: {level.name}: found games of program {one['fingerprint']} that "
                f"{one['continuation']} plays on, allowed: of {fingerprint}, greedy; give another "
                "folder"
            )
    return {(one["behaviour"], one["seed"]) for one in own}


class _Task:
    """The games that are to be played of a level. Processes can hand it to each other."""

    def __init__(
        self, level: Level, runs: list[tuple[Behaviour, int]], settings: dict[str, int]
    ) -> None:
        self.name, self.split, self.folder = level.name, level.split, level.level_set.folder
        self.runs, self.settings = runs, settings

    def play(self) -> list[Episode]:
        game = _levels(self.split, self.folder)[self.name].game()
        return [
            play_game(self.name, game, one, seed, self.settings, None) for one, seed in self.runs
        ]


@functools.lru_cache(maxsize=1)
def _levels(split: str, folder: pathlib.Path) -> dict[str, Level]:
    return {level.name: level for level in levels(split, folder)}


def _played(tasks: Sequence[_Task], jobs: int) -> Generator[tuple[str, list[Episode]], None, None]:
    """Gives the episodes of each level when they are there."""
    if jobs == 1 or len(tasks) < 2:
        for task in tasks:
            yield task.name, task.play()
        return
    context = multiprocessing.get_context("spawn")  # the caller may have threads
    # Ctrl-C ends a process without a word.
    start = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with concurrent.futures.ProcessPoolExecutor(jobs, context, start) as pool:
        running = {pool.submit(task.play): task.name for task in tasks}
        try:
            for future in concurrent.futures.as_completed(running):
                yield running.pop(future), future.result()
        except BrokenProcessPool:
            raise MallocGameError("a process has ended; run it again to go on") from None
        finally:
            pool.shutdown(cancel_futures=True)
