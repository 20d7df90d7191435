"""Episodes as a Minari dataset."""

import copy
import itertools
import os
import pathlib
import shutil
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from mallocgame._core import OBSERVATION_VERSION, Observer
from mallocgame.errors import (
    InvalidActionError,
    InvalidInputError,
    MissingExtraError,
    MissingFileError,
)
from mallocgame.offline.episodes import FACTS, OBSERVATIONS, Episode, settings_named
from mallocgame.playables import played
from mallocgame.programs import program_names

_MODES = 5  # actions for each candidate of the priority game


def write_minari(episodes: Iterable[Episode], dataset_id: str, **metadata: Any) -> Any:
    """Writes a Minari dataset, and returns it as minari.load_dataset() would.

    Its spaces are those of MallocGameEnv with observation="compact" or "flat". `infos` has, with a
    row for each observation, `action_mask` int8 and `returns` float32, both [actions]; the last row
    is 0 and NaN. What else an Episode says is in the episode's metadata, and in `observation` the
    OBSERVATION_VERSION. Games without a decision are left out.

    recover_environment() of the dataset is an environment that draws among its programs, if each is
    a bundled program or a level and an episode of it comes out the same when it is played again.

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
    of_level: dict[str, Episode] = {}

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
            of_level.setdefault(episode.level, episode)
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
        if "env" not in metadata:
            spec = _spec(list(of_level.values()), max(one["min_buffer_bytes"] for one in facts))
            if spec is not None:
                dataset.storage.update_metadata({"env_spec": spec.to_json()})
                dataset = minari.load_dataset(dataset_id)
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


def _spec(episodes: list[Episode], min_buffer_bytes: int) -> Any:
    """Returns the spec of an environment that plays these games; None: a program has no name.

    min_buffer_bytes: of the environment; a solver may have asked about smaller buffers than it.
    """
    import gymnasium

    size, actions = episodes[0].observations.shape[1], episodes[0].masks.shape[1]
    options: dict[str, Any] = {"paper_actions": True} if actions == 3 else {}
    for kind, others in (("priority", 0), ("schedule", 17)):
        if actions > 4 and (actions - others) % _MODES == 0:
            options = {"game": kind, "candidates": (actions - others) // _MODES}
    names = [_name(episode, options) for episode in episodes]
    if None in names:
        return None
    (game,) = (one.game for one in played(names[0] or "", **options))
    fits = [kind for kind in OBSERVATIONS if Observer(game, settings_named(kind)).size == size]
    if not fits:
        return None
    spec = copy.deepcopy(gymnasium.spec("mallocgame/MallocGame-v0"))
    program = names[0] if len(names) == 1 else names
    spec.kwargs = {
        "program": program,
        "observation": fits[0],
        "min_buffer_bytes": min_buffer_bytes,
        **options,
    }
    return spec


def _name(episode: Episode, options: dict[str, Any]) -> str | None:
    """Returns the name of the program or level that an episode is of; None: it has none."""
    name = episode.level
    known = [one for one in program_names() if one == name or one.startswith(name + ".")]
    options = options | {"min_buffer_bytes": episode.min_buffer_bytes}
    return next((one for one in (*known, name) if _is_of(episode, one, options)), None)


def _is_of(episode: Episode, name: str, options: dict[str, Any]) -> bool:
    """Whether an episode comes out the same when it is played again on what has that name."""
    try:
        (game,) = (one.game for one in played(name, **options))
        if game.program.fingerprint != episode.fingerprint:
            return False
        state = game.initial_state()
        rewards = [state.apply(action) for action in episode.actions.tolist()]
    except (InvalidInputError, InvalidActionError, MissingFileError):
        return False
    same = np.array_equal(np.array(rewards, np.float32), episode.rewards)
    return same and state.is_terminal() and state.latency_ps == episode.latency_ps


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
