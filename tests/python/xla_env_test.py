"""VectorEnv.xla(): inside JAX's loops it does what VectorEnv does step by step."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import mallocgame as mg

pytestmark = pytest.mark.full
pytest.importorskip("gymnasium", reason="Gymnasium isn't installed: pip install 'mallocgame[gym]'")
jax = pytest.importorskip("jax", reason="JAX isn't installed: pip install 'mallocgame[jit]'")

import jax.numpy as jnp

from mallocgame.envs.vector import VectorEnv

PROGRAMS = ["wavernn_64steps_b8.tpu_v4i", "gcn_dense_2048.tpu_v4i", "mlp_train_adam_b512.tpu_v5e"]
# A step that fails leaves XLA's dispatch of later ones alone only where each is waited for.
CPU = jax.devices("cpu")[0]


@pytest.fixture(autouse=True)
def on_the_cpu():
    with jax.default_device(CPU):
        yield


def first_legal(masks):
    return jnp.argmax(masks, axis=1).astype(jnp.int32)


def last_legal(masks):
    return masks.shape[1] - 1 - jnp.argmax(masks[:, ::-1], axis=1).astype(jnp.int32)


@pytest.mark.parametrize(
    ("observation", "mode", "game"),
    [
        ("dict", "NextStep", "time"),
        ("compact", "SameStep", "time"),
        ("compact", "SameStep", "priority"),
        ("compact", "NextStep", "schedule"),
    ],
)
def test_a_scan_does_what_steps_do(observation, mode, game):
    made = VectorEnv(6, PROGRAMS, observation=observation, autoreset_mode=mode, game=game)
    handle, reset, step = made.xla()

    @jax.jit
    def rollout(handle, seed):
        handle, (_, info) = reset(handle, seed)

        def body(carry, _):
            handle, masks = carry
            handle, (observations, rewards, ends, truncated, info) = step(handle, last_legal(masks))
            return (handle, info["action_mask"]), (observations, rewards, ends, truncated)

        return jax.lax.scan(body, (handle, info["action_mask"]), None, 60)

    (handle, masks), found = rollout(handle, 5)
    _, info = made.reset(seed=5)
    expected = []
    for _ in range(60):
        actions = np.asarray(last_legal(info["action_mask"]))
        observations, rewards, ends, truncated, info = made.step(actions)
        expected.append((observations, rewards.astype(np.float32), ends, truncated))
    expected = jax.tree.map(lambda *rows: np.stack(rows), *expected)
    jax.tree.map(np.testing.assert_array_equal, found, expected)
    np.testing.assert_array_equal(masks, info["action_mask"])
    assert found[2].any() and not found[3].any()
    # The same again of these environments, and of others by the same compiled program.
    other = made.xla()
    for begun in (handle, other.handle):
        jax.tree.map(np.testing.assert_array_equal, rollout(begun, 5)[1], found)


@pytest.mark.weekly
@pytest.mark.parametrize(
    ("game", "mode"), [("time", "SameStep"), ("priority", "NextStep"), ("schedule", "SameStep")]
)
def test_a_million_random_steps_of_three_games_are_those_of_vector_env(game, mode):
    made = VectorEnv(64, PROGRAMS, observation="compact", autoreset_mode=mode, game=game)
    handle, reset, step = made.xla()

    @jax.jit
    def rollout(handle, keys):
        handle, (_, info) = reset(handle, 0)

        def body(carry, key):
            handle, masks = carry
            logits = jnp.where(masks > 0, 0.0, -jnp.inf)
            action = jax.random.categorical(key, logits).astype(jnp.int32)
            handle, (observation, reward, end, _, info) = step(handle, action)
            seen = (action, reward, end, observation.sum(1))
            return (handle, info["action_mask"]), seen

        return jax.lax.scan(body, (handle, info["action_mask"]), keys)

    (_, masks), rows = rollout(handle, jax.random.split(jax.random.key(1), 5300))
    assert np.isfinite(rows[3]).all() and np.sum(rows[2]) > 1000
    _, info = made.reset(seed=0)
    for action, reward, end in zip(*map(np.asarray, rows[:3]), strict=True):
        _, rewards, ends, _, info = made.step(action)
        np.testing.assert_array_equal(rewards.astype(np.float32), reward)
        np.testing.assert_array_equal(ends, end)
    np.testing.assert_array_equal(info["action_mask"], masks)


def test_threads_that_share_environments_take_turns_or_are_refused():
    handle, reset, _ = VectorEnv(64, PROGRAMS[0], observation="compact").xla()
    run = jax.jit(lambda handle: reset(handle)[0])

    def count_done(_):
        done = 0
        for _ in range(100):
            try:
                run(handle).block_until_ready()
                done += 1
            except jax.errors.JaxRuntimeError as error:
                assert "another thread is at work with these environments" in str(error)
        return done

    with ThreadPoolExecutor(4) as threads:
        done = sum(threads.map(count_done, range(4)))
    assert done > 0 and int(run(handle)[2]) == done + 1


def test_types_and_shapes_are_known_before_anything_runs():
    handle, reset, step = VectorEnv(3, PROGRAMS[0], observation="compact").xla()
    actions = jax.ShapeDtypeStruct((3,), jnp.int32)
    after, (observations, rewards, ends, truncated, info) = jax.eval_shape(step, handle, actions)
    size = VectorEnv(1, PROGRAMS[0], observation="compact").single_observation_space.shape[0]
    assert after == jax.ShapeDtypeStruct(handle.shape, handle.dtype)
    assert observations == jax.ShapeDtypeStruct((3, size), jnp.float32)
    assert rewards == jax.ShapeDtypeStruct((3,), jnp.float32)
    assert ends == truncated == jax.ShapeDtypeStruct((3,), jnp.bool_)
    assert info["action_mask"] == jax.ShapeDtypeStruct((3, 4), jnp.int8)
    begun, (first, _) = jax.eval_shape(reset, handle)
    assert begun == after and first == observations


def test_it_is_a_fork_from_where_the_environments_are():
    made = VectorEnv(2, PROGRAMS, observation="compact", autoreset_mode="SameStep")
    _, info = made.reset(seed=1)
    for _ in range(4):
        _, _, _, _, info = made.step(np.asarray(first_legal(info["action_mask"])))
    handle, _, step = made.xla()
    actions = first_legal(info["action_mask"])
    handle, (theirs, *_) = step(handle, actions)
    assert made.state(0).num_decisions == 4
    np.testing.assert_array_equal(theirs, made.step(np.asarray(actions))[0])


def test_what_is_wrong_is_an_exception_with_our_words():
    made = VectorEnv(3, PROGRAMS[0], observation="compact", autoreset_mode="Disabled")
    handle, reset, step = made.xla()
    step = jax.jit(step)
    first, (_, info) = reset(handle, 0)
    legal = first_legal(info["action_mask"])
    error = jax.errors.JaxRuntimeError
    with pytest.raises(error, match="environment 1: action 9 is illegal"):
        jax.block_until_ready(step(first, legal.at[1].set(9)))
    second, (_, _, ends, _, info) = step(first, legal)  # None had moved.
    with pytest.raises(error, match="after call 1 of environments that have had 2"):
        jax.block_until_ready(step(first, legal))
    while not ends.all():
        last, (_, _, ends, _, info) = step(second, last_legal(info["action_mask"]))
        second = last
    with pytest.raises(error, match="the game is over"):
        jax.block_until_ready(step(second, legal))
    reset(second)
    with pytest.raises(error, match="gone"):
        jax.block_until_ready(step(jnp.zeros(4, jnp.uint32), legal))
    other = VectorEnv(4, PROGRAMS[0], observation="compact").xla()
    with pytest.raises(error, match="another shape"):
        jax.block_until_ready(step(other.handle, legal))
    with pytest.raises(mg.InvalidInputError, match=r"shape \(3,\)"):
        step(second, jnp.zeros(2, jnp.int32))
    with pytest.raises(mg.InvalidInputError, match="float32"):
        step(second, jnp.zeros(3))
    with pytest.raises(mg.InvalidInputError, match="seed"):
        reset(handle, -1)
    with pytest.raises(mg.InvalidInputError, match="reward"):
        VectorEnv(2, mg.levels()[0], reward="score").xla()
    with pytest.raises(NotImplementedError, match="vmap"):  # JAX's own refusal
        jax.vmap(step, in_axes=(None, 0))(handle, jnp.zeros((2, 3), jnp.int32))


def gone(handle, actions) -> bool:
    """Says whether the environments of a handle are no more, by a program of others."""
    step = jax.jit(VectorEnv(2, PROGRAMS[0], observation="compact").xla().step)
    try:
        jax.block_until_ready(step(handle, actions))
    except jax.errors.JaxRuntimeError as error:
        return "gone" in str(error)
    return False


def test_it_is_released_when_it_is_collected():
    found = VectorEnv(2, PROGRAMS[0], observation="compact").xla()
    handle, reset, step = found
    compiled = jax.jit(step).lower(handle, jnp.zeros(2, jnp.int32)).compile()
    handle, (_, info) = reset(handle, 0)
    actions = first_legal(info["action_mask"])
    handle, _ = compiled(handle, actions)
    environments = weakref.ref(step.environments)
    del found, reset, step
    jax.clear_caches()
    gc.collect()
    assert environments() is None
    handle, _ = compiled(handle, actions)  # A program keeps what it steps,
    assert not gone(handle, actions)
    del compiled
    jax.clear_caches()
    gc.collect()
    assert gone(handle, actions)


def test_a_program_that_runs_keeps_what_it_steps():
    def returns():
        handle, reset, step = VectorEnv(64, PROGRAMS[0], autoreset_mode="SameStep").xla()

        def play(seed):
            def body(carry, _):
                handle, masks = carry
                handle, (_, rewards, _, _, info) = step(handle, last_legal(masks))
                return (handle, info["action_mask"]), rewards

            start, (_, info) = reset(handle, seed)
            return jax.lax.scan(body, (start, info["action_mask"]), None, 500)[1].sum()

        return jax.jit(play)(0)  # It may not even have begun when its function is gone.

    found = returns()
    gc.collect()
    assert found > 0
