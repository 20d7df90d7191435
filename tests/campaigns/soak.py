"""Plays for very long, and shows that nothing breaks, grows or drifts.

    python tests/campaigns/soak.py OUT [--steps N] [--hours N] [--build build/cpp]

First the program `soak` of the build plays random games of all kinds on all bundled programs and
levels until N steps are made, and judges every plan. Then vector environments of the games are
stepped through Python for N simulated hours: in an hour they make as many steps as PPO trains on
(STEPS_A_SECOND). With 0 one of the two is left out. OUT keeps the lines of both. The exit status is
1 if something is wrong, and if memory grows or results drift.
"""

import argparse
import dataclasses
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

import mallocgame as mg
from mallocgame.level_sets.level_set import BUNDLED, load_level_set

# Masked PPO of sb3-contrib trains on 2,270 a second of one core (resnet50_b1, 16 MiB, the compact
# observation, 8 environments), so an hour of simulation is one of training.
STEPS_A_SECOND = 2500
# How much more memory the last tenth may have than the second one, for what allocators keep.
GROWTH = 1.03
ENVIRONMENTS = 256
_ACTIONS = 4096  # rows of random numbers, used again and again


def programs(folder: pathlib.Path) -> None:
    """Writes every bundled program, those of the levels included."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in mg.program_names():
        mg.save_program(mg.load_program(name), folder / f"{name}.mgp")
    levels = load_level_set(BUNDLED)
    for name in levels.programs:
        mg.save_program(levels.load_program(name), folder / f"{name}.mgp")


def random_games(out: pathlib.Path, build: pathlib.Path, steps: int) -> Iterator[dict]:
    """The lines of `soak`, as they come."""
    command = [build / "tests/campaigns/soak", out / "programs", str(steps), str(os.cpu_count())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        yield from map(json.loads, running.stdout)
    if running.returncode:
        sys.exit(f"{command[0]} ended with {running.returncode}")


@dataclasses.dataclass
class Batch:
    """Vector environments of one kind, and what they did."""

    make: Callable[[], mg.VectorEnv]
    start: str = ""  # a digest of what the first steps gave

    def first_steps(self) -> str:
        """A digest of the first steps of a fresh one."""
        seen = hashlib.sha256()
        fresh = self.make()
        _, info = fresh.reset(seed=1)
        chance = np.random.default_rng(1)
        for _ in range(200):
            actions = _draw(chance.random(info["action_mask"].shape), info["action_mask"])
            observations, rewards, ended, _, info = fresh.step(actions)
            for array in (observations, rewards, ended, info["action_mask"]):
                seen.update(np.ascontiguousarray(array).tobytes())
        fresh.close()
        return seen.hexdigest()


def _draw(wishes: np.ndarray, masks: np.ndarray) -> np.ndarray:
    return np.where(masks, wishes, -1).argmax(axis=1)


def batches() -> list[Batch]:
    """All games, each mode that a trainer uses, with few and many programs."""
    levels = [level.load_program() for level in mg.levels("train")[:48]]
    known = [name for name in mg.program_names() if name.startswith("mlp")]

    def batch(game: str, played: list, **settings: object) -> Batch:
        return Batch(
            lambda: mg.VectorEnv(ENVIRONMENTS, played, observation="compact", game=game, **settings)
        )

    return [
        batch("time", levels),
        batch("priority", levels),
        batch("schedule", known),
        batch("time", known, autoreset_mode="SameStep", threads=2),
        batch("priority", known, assign="fixed", copy=False),
    ]


def vector_environments(hours: int) -> Iterator[dict]:
    """Plays on in each kind of environment by turns, and tells of every hour."""
    kinds = batches()
    playing = []
    for kind in kinds:
        kind.start = kind.first_steps()
        env = kind.make()
        _, info = env.reset(seed=0)
        playing.append((env, info))
    chance = np.random.default_rng(0)
    steps = episodes = 0
    for hour in range(1, hours + 1):
        began = time.monotonic()
        for k, (env, info) in enumerate(playing):
            wishes = chance.random((_ACTIONS, *info["action_mask"].shape), dtype=np.float32)
            for step in range(STEPS_A_SECOND * 3600 // ENVIRONMENTS // len(playing)):
                actions = _draw(wishes[step % _ACTIONS], info["action_mask"])
                _, rewards, ended, _, info = env.step(actions)
                if not np.isfinite(rewards).all():
                    sys.exit(f"hour {hour}: a reward is not finite")
                episodes += int(ended.sum())
                steps += ENVIRONMENTS
            playing[k] = (env, info)
        yield {
            "hour": hour,
            "steps": steps,
            "episodes": episodes,
            "seconds": round(time.monotonic() - began, 1),
            "resident_mb": resident_mb(),
            "same": all(kind.first_steps() == kind.start for kind in kinds),
        }


def resident_mb() -> float:
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGESIZE") / 1e6, 1)


def followed(path: pathlib.Path, lines: Iterator[dict]) -> list[dict]:
    """Writes and shows lines as they come."""
    kept = []
    with path.open("w") as file:
        for line in lines:
            kept.append(line)
            text = json.dumps(line)
            file.write(text + "\n")
            file.flush()
            print(text, flush=True)
    return kept


def grown(lines: list[dict]) -> float:
    """The memory of the last tenth, as a multiple of that of the second."""
    tenth = max(1, len(lines) // 10)
    sizes = [line["resident_mb"] for line in lines]
    return max(sizes[-tenth:]) / max(sizes[tenth : 2 * tenth] or sizes[:1])


def main() -> int:
    parser = argparse.ArgumentParser(description="Plays for very long.")
    parser.add_argument("out", metavar="OUT", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=10**9, help="of random games (10^9)")
    parser.add_argument("--hours", type=int, default=24, help="of vector environments (24)")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/cpp"))
    options = parser.parse_args()
    out = options.out.resolve()
    programs(out / "programs")
    wrong = []
    parts = {}
    if options.steps:
        parts["games"] = random_games(out, options.build.resolve(), options.steps)
    if options.hours:
        parts["environments"] = vector_environments(options.hours)
    for name, lines in parts.items():
        kept = followed(out / f"{name}.jsonl", lines)
        growth = grown(kept)
        print(f"{name}: memory of the last tenth is {growth:.3f} times that of the second")
        if growth > GROWTH:
            wrong.append(f"{name}: memory grew to {growth:.3f} times")
        if not all(line.get("same", True) for line in kept):
            wrong.append(f"{name}: the first steps gave something else later")
    print("\n".join(wrong) or "nothing is wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
