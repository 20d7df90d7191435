"""All of training, in a folder: each step leaves a file there, and is not done again."""

import dataclasses
import math
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mallocgame._core import LEARNED_SIZES as SIZES
from mallocgame._core import read_file, write_file
from mallocgame._learned.demonstrations import Demonstration, demonstrate, load_demonstrations
from mallocgame._learned.returns import choose_styles, evolve
from mallocgame._learned.weights import Weights, load_network, load_weights, save_weights
from mallocgame._levels import Level, levels
from mallocgame.errors import InvalidInputError

WEIGHTS = "weights.csv"
_DEMONSTRATIONS, _IMITATED, _EVOLVED = "demonstrations", "imitated.csv", "evolved.csv"
_SETTINGS, _CURVE = "settings.txt", "curve.csv"
_MOST_RUNS = 1500  # games of larger programs take long and are few
_STYLE_LEVELS = 200  # of train, that styles are chosen on
_EVOLVED_STYLES = 8  # the best of whose games is a return

Told = Callable[[str, str], object]  # told the step, and how far it is


def _number(default: float, least: float, most: float) -> Any:
    return dataclasses.field(default=default, metadata={"least": least, "most": most})


@dataclasses.dataclass(frozen=True)
class Settings:
    """How the solver `learned` is trained.

    epochs=0 imitates nothing, generations=0 follows no returns, and with both 0 the network's
    advice is the same for all runs, so that only styles are chosen.
    """

    seed: int = _number(0, 0, 2**63 - 1)
    share: float = _number(1.0, 0.0, 1.0)  # of the programs of the train split; one at least
    variants: int = _number(3, 1, 100)  # levels of each program, drawn at random
    evaluations: int = _number(3000, 1, 10**9)  # that priority has for a demonstration
    epochs: int = _number(6, 0, 10**6)
    # To follow returns takes minutes, and wins nothing on families that are not train's.
    generations: int = _number(0, 0, 10**6)
    tried_styles: int = _number(512, 1, 10**6)
    styles: int = _number(48, 1, 1000)

    @staticmethod
    def of(texts: dict[str, str]) -> "Settings":
        """Settings from texts by name. InvalidInputError: no such setting, or no such value."""
        known = {field.name: field for field in dataclasses.fields(Settings)}
        values: dict[str, Any] = {}
        for name, text in texts.items():
            if name not in known:
                raise InvalidInputError(f"--config: found '{name}', allowed: {', '.join(known)}")
            least, most = known[name].metadata["least"], known[name].metadata["most"]
            try:
                values[name] = type(getattr(Settings, name))(text)
            except ValueError:
                values[name] = math.nan
            if not least <= values[name] <= most:
                raise InvalidInputError(
                    f"--config: {name}: found '{text}', allowed: {least} to {most}"
                )
        return Settings(**values)


def train(
    folder: str | os.PathLike[str],
    settings: Settings,
    jobs: int,
    told: Told,
    level_set: str | os.PathLike[str] | None = None,
) -> Weights:
    """Trains, and writes FOLDER/weights.csv.

    The network learns on the train split of the set of levels. Styles are chosen on both that and
    the validation split, of architectures that the network has not seen. The same settings give
    the same weights, whatever the number of `jobs`.

    Interrupted, it goes on behind the last step that was finished. InvalidInputError: the folder
    holds a training with other settings. FileAccessError.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _check_settings(folder / _SETTINGS, settings)
    train_levels = choose_levels(settings, level_set)
    validation = levels("validation", level_set)
    plans = folder / _DEMONSTRATIONS
    count = 0

    def made(_: str) -> None:
        nonlocal count
        count += 1
        told("demonstrations", f"{count} of {len(train_levels) + len(validation)}")

    demonstrate([*train_levels, *validation], plans, settings.evaluations, jobs, made)
    learned_from = load_demonstrations(train_levels, plans, _MOST_RUNS)
    if not learned_from:
        raise InvalidInputError("train: the levels leave nothing to win")
    weights = _network(folder, settings, learned_from, jobs, told)
    groups = [_some(learned_from), load_demonstrations(validation, plans, _MOST_RUNS)]
    told("styles", f"{settings.tried_styles} styles on {sum(map(len, groups))} levels")
    styles = choose_styles(
        weights, groups, settings.tried_styles, settings.styles, settings.seed, jobs
    )
    both = np.concatenate([weights, styles.ravel()])
    save_weights(both, folder / WEIGHTS)
    return load_weights(folder / WEIGHTS)


def choose_levels(
    settings: Settings, level_set: str | os.PathLike[str] | None = None
) -> list[Level]:
    """Some variants of each program of the train split."""
    rng = np.random.default_rng(settings.seed)
    programs: dict[str, list[Level]] = {}
    for level in levels("train", level_set):
        programs.setdefault(level.program_name, []).append(level)
    kept = rng.permutation(sorted(programs))[: max(1, round(settings.share * len(programs)))]
    return [
        programs[name][place]
        for name in sorted(kept)
        for place in sorted(rng.permutation(len(programs[name]))[: settings.variants])
    ]


def _some(demonstrations: Sequence[Demonstration]) -> Sequence[Demonstration]:
    """At most _STYLE_LEVELS of them, evenly."""
    return demonstrations[:: -(-len(demonstrations) // _STYLE_LEVELS)]


def _network(
    folder: pathlib.Path,
    settings: Settings,
    learned_from: Sequence[Demonstration],
    jobs: int,
    told: Told,
) -> Weights:
    imitated, evolved = folder / _IMITATED, folder / _EVOLVED
    if not (settings.epochs or settings.generations):
        return np.zeros(SIZES["weights"], np.float32)
    if not imitated.exists():
        from mallocgame._learned.imitation import imitate

        curve: list[str] = []

        def learned(epoch: int, loss: float) -> None:
            curve.append(f"imitation,{epoch},{loss:.4f}\n")
            told("imitation", f"epoch {epoch} of {settings.epochs}, loss {loss:.3f}")

        weights = imitate(learned_from, settings.epochs, settings.seed, learned)
        _write_curve(folder, "step,number,loss or score\n" + "".join(curve), append=False)
        save_weights(weights, imitated)
    if not settings.generations:
        return load_network(imitated)
    if not evolved.exists():
        curve = []

        def played(generation: int, score: float) -> None:
            curve.append(f"evolution,{generation},{score:.4f}\n")
            told("evolution", f"generation {generation} of {settings.generations}, {score:.3f}")

        start = load_network(imitated)
        styles = choose_styles(
            start,
            [_some(learned_from)],
            settings.tried_styles,
            _EVOLVED_STYLES,
            settings.seed,
            jobs,
        )
        weights = evolve(
            start, styles, learned_from, settings.generations, settings.seed, jobs, played
        )
        _write_curve(folder, "".join(curve), append=True)
        save_weights(weights, evolved)
    return load_network(evolved)


def _check_settings(path: pathlib.Path, settings: Settings) -> None:
    text = "".join(f"{name}={value}\n" for name, value in dataclasses.asdict(settings).items())
    if not path.exists():
        write_file(os.fsencode(path), text.encode())
    elif (found := read_file(os.fsencode(path)).decode()) != text:
        differing = sorted(set(found.split()) - set(text.split()))
        raise InvalidInputError(
            f"{path.parent}: holds a training with {', '.join(differing)}; give another folder"
        )


def _write_curve(folder: pathlib.Path, text: str, append: bool) -> None:
    path = folder / _CURVE
    before = read_file(os.fsencode(path)) if append and path.exists() else b""
    write_file(os.fsencode(path), before + text.encode())
