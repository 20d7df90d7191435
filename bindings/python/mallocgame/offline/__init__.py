"""Offline data: games, and what each action at each of their positions would have come to.

It needs NumPy; Minari datasets need the extra `offline`.

    import mallocgame as mg
    from mallocgame import offline

    offline.make_dataset(mg.levels("train")[:80], "data")
    for episode in offline.read_numpy("data"):
        print(episode.level, episode.behaviour, episode.observations.shape)
"""

from mallocgame.offline.episodes import BEHAVIOURS, Behaviour, Episode, play_games
from mallocgame.offline.making import make_dataset
from mallocgame.offline.minari_files import write_minari
from mallocgame.offline.numpy_files import read_numpy, write_numpy

__all__ = [
    "BEHAVIOURS",
    "Behaviour",
    "Episode",
    "make_dataset",
    "play_games",
    "read_numpy",
    "write_minari",
    "write_numpy",
]
