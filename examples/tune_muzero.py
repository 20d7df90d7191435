"""Ray Tune over settings of MuZero. Each trial trains on several programs.

.ci/setup agents && .ci/setup rllib
python examples/tune_muzero.py FOLDER [--trials N] [--steps N] [--programs NAME ...]

The same command goes on with what is in FOLDER.
"""

import argparse
import pathlib
import tempfile
from typing import Any

import numpy as np
import ray
from ray import tune
from ray.tune.schedulers import ASHAScheduler
from ray.tune.search import BasicVariantGenerator

import mallocgame as mg
from mallocgame import agents

# Settings that are best on one program are often bad on others.
PROGRAMS = ["mlp_train_adam_b512.tpu_v4i", "gcn_dense_2048.tpu_v4i", "wavernn_64steps_b8.tpu_v4i"]
UNSEEN = "nerf_mlp_64k.tpu_v4i"
SPACE = {
    "learning_rate": tune.loguniform(3e-4, 3e-3),
    "imitation": tune.uniform(0.0, 1.0),
    "demonstration_share": tune.uniform(0.0, 0.5),
}
CHECKPOINT = "checkpoint.muzero"


def play(agent: agents.MuZeroAgent, program: str) -> float:
    """Returns the return of a game by the networks and search, without rollouts to help them."""
    report = agent.play(mg.load_program(program), config={"rollout_share": 0}).report
    return 1 - report.latency_ps / report.all_main_ps


def train(config: dict[str, Any]) -> None:
    """A trial: after each step it plays the programs, reports it, and leaves a checkpoint."""
    begun = tune.get_checkpoint()
    if begun is None:
        trainer = agents.MuZero(config["programs"], config["settings"], seed=0, threads=1)
    else:
        with begun.as_directory() as folder:
            trainer = agents.MuZero.load(pathlib.Path(folder, CHECKPOINT), threads=1)
    while trainer.iterations < config["steps"]:
        trainer.step()
        agent = trainer.agent()
        played = [play(agent, program) for program in config["programs"]]
        with tempfile.TemporaryDirectory() as folder:
            trainer.save(pathlib.Path(folder, CHECKPOINT))
            tune.report(
                {"return": np.mean(played)}, checkpoint=tune.Checkpoint.from_directory(folder)
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--steps", type=int, default=40, help="of a trial that is not ended early")
    parser.add_argument("--programs", nargs="+", default=PROGRAMS)
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="NAME=VALUE", help="settings of all trials"
    )
    options = parser.parse_args()

    if not ray.is_initialized():
        ray.init("local", include_dashboard=False, log_to_driver=False)
    folder = options.folder.resolve()
    trial = tune.with_resources(train, {"cpu": 1})
    if tune.Tuner.can_restore(str(folder)):
        tuner = tune.Tuner.restore(str(folder), trial)
    else:
        fixed = dict(one.split("=", 1) for one in options.set)
        tuner = tune.Tuner(
            trial,
            param_space={
                "programs": options.programs,
                "settings": {**SPACE, **fixed},
                "steps": options.steps,
            },
            tune_config=tune.TuneConfig(
                metric="return",
                mode="max",
                num_samples=options.trials,
                search_alg=BasicVariantGenerator(random_state=0),
                scheduler=ASHAScheduler(max_t=options.steps, grace_period=-(-options.steps // 4)),
            ),
            run_config=tune.RunConfig(
                name=folder.name,
                storage_path=str(folder.parent),
                checkpoint_config=tune.CheckpointConfig(num_to_keep=1),
            ),
        )
    results = tuner.fit()
    trials = [results[i] for i in range(len(results)) if "return" in (results[i].metrics or {})]
    # A restored experiment lists its trials in another order: of equally good ones one is chosen.
    best = min(trials, key=lambda trial: (-(trial.metrics or {})["return"], trial.path))
    metrics, checkpoint = best.metrics, best.checkpoint
    assert metrics and checkpoint and best.config, "each trial reports them"
    print(f"mean return {metrics['return']:.4f} by {best.config['settings']}")
    with checkpoint.as_directory() as found:
        agent = agents.MuZeroAgent.load(pathlib.Path(found, CHECKPOINT))
    print(f"{UNSEEN}, unseen: {play(agent, UNSEEN):.4f}")


if __name__ == "__main__":
    main()
