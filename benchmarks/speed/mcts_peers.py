"""Measures the tree search beside its peers, simulations per CPU second, in one run.

They are mallocGame's from C++, mctx, and LightZero's C++ tree.

    python benchmarks/speed/mcts_peers.py build/cpp/benchmarks/speed/mallocgame_mcts_speed

Needs mctx and jax (pip install mctx "jax[cpu]") and LightZero's wheel (pip install --no-deps
LightZero); of that only the compiled tree is loaded, so that nothing it depends on is needed. Every
peer plays the same kind of game: a table of random logits, values and rewards, 64 roots, 50
simulations, discount 0.997. CPU time of the whole process, the best of five rounds. First it is
checked that mctx and we visit the same actions.
"""

import functools
import importlib.metadata
import importlib.util
import json
import subprocess
from typing import Any

import numpy as np
from rates import ROUNDS, best

from mallocgame import experiments as ex

ROWS, ROOTS, SIMULATIONS, DISCOUNT = 1024, 64, 50, 0.997


class Table:
    """Row k of the table is position k; action a leads from it to a row that a hash says."""

    def __init__(self, actions: int):
        chance = np.random.default_rng(0)
        self.num_actions = actions
        self.logits = chance.uniform(-1, 1, (ROWS, actions)).astype(np.float32)
        self.values = chance.uniform(size=ROWS).astype(np.float32)
        self.rewards = (0.1 * chance.uniform(size=ROWS)).astype(np.float32)

    def follow(self, keys, actions):
        return (keys * 31 + actions + 1) % ROWS

    # As a model of mallocgame.mcts.
    def reserve(self, slots):
        self.keys = np.zeros(slots, np.int32)

    def start(self, roots, slots, out):
        self.describe(roots, slots, out)

    def step(self, roots, parents, actions, slots, out):
        self.describe(self.follow(self.keys[parents], actions), slots, out)

    def describe(self, keys, slots, out):
        self.keys[slots] = keys
        out.logits[:], out.values[:], out.rewards[:] = (
            self.logits[keys],
            self.values[keys],
            self.rewards[keys],
        )


def mctx_search(table: Table, rule: str, gumbel_scale: float = 1.0):
    """A compiled search of mctx over the table: seed -> its output."""
    import jax
    import jax.numpy as jnp
    import mctx

    logits, values, rewards = map(jnp.asarray, (table.logits, table.values, table.rewards))

    def step(params, rng, actions, keys):
        keys = table.follow(keys, actions)
        return mctx.RecurrentFnOutput(
            reward=rewards[keys],
            discount=jnp.full(keys.shape, DISCOUNT),
            prior_logits=logits[keys],
            value=values[keys],
        ), keys

    keys = jnp.arange(ROOTS)
    root = mctx.RootFnOutput(prior_logits=logits[keys], value=values[keys], embedding=keys)
    policy = {
        "puct": functools.partial(mctx.muzero_policy, dirichlet_fraction=0.0),
        "gumbel": functools.partial(mctx.gumbel_muzero_policy, gumbel_scale=gumbel_scale),
    }[rule]
    return jax.jit(
        lambda seed: policy(
            params=(),
            rng_key=jax.random.PRNGKey(seed),
            root=root,
            recurrent_fn=step,
            num_simulations=SIMULATIONS,
        )
    )


def mctx_rate(actions: int, rule: str) -> float:
    search = mctx_search(Table(actions), rule)
    return best(lambda: search(0).action.block_until_ready(), ROOTS * SIMULATIONS)


def agreement(actions: int, rule: str) -> float:
    """Returns the share of roots where mctx and we visit every action equally often.

    There is no noise.
    """
    from mallocgame import mcts

    settings = {"gumbel": {"noise_scale": 0}, "puct": {"dirichlet_fraction": 0}}[rule]
    ours = mcts.search(
        ROOTS,
        actions,
        rule,
        simulations=SIMULATIONS,
        discount=DISCOUNT,
        scaling="node",
        min_range=1e-8,
        settings=settings,
    )
    ours.run(Table(actions))
    summary = mctx_search(Table(actions), rule, gumbel_scale=0.0)(0).search_tree.summary()
    return float((np.asarray(summary.visit_counts) == ours.visits).all(axis=1).mean())


def lightzero_tree() -> Any:
    """Loads the compiled module without the packages around it."""
    name = "lzero.mcts.ctree.ctree_muzero.mz_tree"
    files = importlib.metadata.files("LightZero") or []
    path = next(
        file.locate()
        for file in files
        if "/ctree_muzero/mz_tree" in str(file) and file.suffix == ".so"
    )
    spec = importlib.util.spec_from_file_location(name, str(path))
    assert spec is not None and spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lightzero_rate(mz_tree: Any, actions: int) -> float:
    """LightZero's C++ tree of MuZero under Python, its model the same table."""
    table, legal = Table(actions), [list(range(actions)) for _ in range(ROOTS)]

    def run() -> None:
        roots = mz_tree.Roots(ROOTS, legal)
        roots.prepare_no_noise([0.0] * ROOTS, table.logits[:ROOTS].tolist(), [-1] * ROOTS)
        bounds = mz_tree.MinMaxStatsList(ROOTS)
        bounds.set_delta(0.01)
        keys = np.zeros((SIMULATIONS + 1, ROOTS), np.int64)
        keys[0] = np.arange(ROOTS)
        for simulation in range(SIMULATIONS):
            results = mz_tree.ResultsWrapper(num=ROOTS)
            paths, indices, last, _ = mz_tree.batch_traverse(
                roots, 19652, 1.25, DISCOUNT, bounds, results, [-1] * ROOTS
            )
            now = table.follow(keys[paths, indices], np.asarray(last))
            keys[simulation + 1] = now
            mz_tree.batch_backpropagate(
                simulation + 1,
                DISCOUNT,
                table.rewards[now].tolist(),
                table.values[now].tolist(),
                table.logits[now].tolist(),
                bounds,
                results,
                [-1] * ROOTS,
            )

    return best(run, ROOTS * SIMULATIONS)


def our_rates(binary: str) -> dict[str, float]:
    command = [
        binary,
        "--benchmark_format=json",
        "--benchmark_min_time=0.1",
        f"--benchmark_repetitions={ROUNDS}",
        f"--benchmark_filter=actions:(3|18|362)/roots:{ROOTS}/leaves:1$",
    ]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)[
        "benchmarks"
    ]
    rates: dict[str, float] = {}
    for row in rows:
        if "simulations" in row and row.get("run_type") == "iteration":
            name = row["run_name"]
            rates[name] = max(rates.get(name, 0), row["simulations"])
    return rates


def main(binary: str) -> None:
    rates = our_rates(binary)
    mz_tree = lightzero_tree()
    for rule in ("puct", "gumbel"):
        shares = [agreement(actions, rule) for actions in (3, 18, 362)]
        print(f"{rule}: roots with the visits of mctx, of {ROOTS}, by 3, 18, 362 actions: {shares}")
    peers = ("puct", "puct, node", "gumbel", "mctx puct", "mctx gumbel", "LightZero puct")
    table = ex.Table(("simulations per CPU second", *peers))
    for actions in (3, 18, 362):
        case = f"actions:{actions}/roots:{ROOTS}/leaves:1"
        row = [rates[f"{rule}/{case}"] for rule in ("PuctTree", "PuctNodeTree", "GumbelTree")]
        row += [mctx_rate(actions, "puct"), mctx_rate(actions, "gumbel")]
        row.append(lightzero_rate(mz_tree, actions))
        table.add(f"{actions} actions", *(f"{rate:,.0f}" for rate in row))
    print(table)


if __name__ == "__main__":
    ex.main(main)
