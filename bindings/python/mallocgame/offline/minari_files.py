"""Episodes as a Minari dataset."""

import itertools
import os
import pathlib
import shutil
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from mallocgame._core import OBSERVATION_VERSION
from mallocgame.errors import InvalidInputError, MissingExtraError
from mallocgame.offline.episodes import FACTS, Episode


def write_minari(episodes: Iterable[Episode], dataset_id: str, **metadata: Any) -> Any:
    """Writes a Minari dataset, and returns it as minari.load_dataset() would.

    Its spaces are those of MallocGameEnv with observation="compact" or "flat". `infos` has, with a
    row for each observation, `action_mask` int8 and `returns` float32, both [actions]; the last row
    is 0 and NaN. What else an Episode says is in the episode's metadata, and in `observation` the
    OBSERVATION_VERSION. Games without a decision are left out.

    dataset_id: NAME-vN, or NAMESPACE/NAME-vN. It is stored where Minari stores datasets:
    MINARI_DATASETS_PATH, or ~/.minari/datasets. metadata: as minari.create_dataset_from_buffers
    takes it: author, author_email, code_permalink, description ...

    InvalidInputError: the id is malformed or taken, there are no episodes, or their sizes differ.
    MallocGameError: minari is not installed.
    """
    minari = check_minari(dataset_id)
    import gymnasium

    games = (episode for episode in episodes if episode.decisions)
    first = next(games, None)
    if first is None:
        raise InvalidInputError(f"{dataset_id}: found no episode with a decision")
    size, actions = first.observations.shape[1], first.masks.shape[1]
    facts: list[dict[str, Any]] = []

    def buffers() -> Iterator[Any]:
        for episode in itertools.chain([first], games):
            found = episode.observations.shape[1], episode.masks.shape[1]
            if found != (size, actions):
                raise InvalidInputError(
                    f"{dataset_id}: found {found[0]} numbers in an observation and {found[1]} "
                    f"actions, allowed: {size} and {actions}, as in the first episode"
                )
            facts.append(
                {name: getattr(episode, name) for name in FACTS}
                | {"observation": OBSERVATION_VERSION}
            )
            yield _buffer(minari, episode)

    folder = pathlib.Path(minari.storage.get_dataset_path(dataset_id))
    try:
        with warnings.catch_warnings():
            # It warns of each metadata that isn't given.
            warnings.simplefilter("ignore", UserWarning)
            dataset = minari.create_dataset_from_buffers(
                dataset_id,
                buffers(),
                observation_space=gymnasium.spaces.Box(-1.0, 1.0, (size,), np.float32),
                action_space=gymnasium.spaces.Discrete(actions),
                **metadata,
            )
        dataset.storage.update_episode_metadata(facts)
    except BaseException:  # Ctrl-C too: half a dataset would be taken for a whole one.
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return dataset


def check_minari(dataset_id: str) -> Any:
    """Returns the module minari, with which a dataset of that id can be written.

    InvalidInputError: the id is malformed or taken, or MINARI_DATASETS_PATH is relative.
    MallocGameError: minari is not installed.
    """
    try:
        import h5py  # noqa: F401
        import minari
        import minari.storage
        import PIL  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtraError("Minari datasets need minari", "offline") from None
    try:
        minari.dataset.minari_dataset.parse_dataset_id(dataset_id)
    except (ValueError, TypeError):
        raise InvalidInputError(
            f"found Minari id '{dataset_id}', allowed: NAME-vN or NAMESPACE/NAME-vN"
        ) from None
    folder = pathlib.Path(minari.storage.get_dataset_path(dataset_id))
    if not folder.is_absolute():  # It would look for its files in the folder twice.
        raise InvalidInputError(
            f"MINARI_DATASETS_PATH: found '{os.environ['MINARI_DATASETS_PATH']}', allowed: an "
            "absolute path"
        )
    if folder.exists():
        raise InvalidInputError(f"{folder}: there is a Minari dataset '{dataset_id}' already")
    return minari


def _buffer(minari: Any, episode: Episode) -> Any:
    """Returns an episode as Minari takes it."""
    count, actions = episode.masks.shape
    masks = np.zeros((count + 1, actions), np.int8)
    masks[:-1] = episode.masks
    returns = np.full(masks.shape, np.nan, np.float32)
    returns[:-1] = episode.returns
    return minari.data_collector.EpisodeBuffer(
        observations=np.concatenate([episode.observations, episode.final_observation[None]]),
        actions=episode.actions.astype(np.int64),
        rewards=episode.rewards,
        terminations=np.arange(count) == count - 1,
        truncations=np.zeros(count, np.bool_),
        infos={"action_mask": masks, "returns": returns},
    )
