"""VectorEnv inside JAX: resets and steps as custom calls of XLA on the CPU.

VectorEnv.xla() makes what is here; it needs JAX, and a build of mallocgame beside a jaxlib.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mallocgame import _core
from mallocgame.envs.settings import Observations
from mallocgame.errors import InvalidInputError


class XlaEnv(NamedTuple):
    """Environments as functions that jit, scan and the other loops of JAX take.

    handle: stands for the environments and how far they are, as EnvPool's does: each call takes
    one and returns the next. It is numbers, so a loop carries it.
    reset(handle, seed=None) -> (handle, (observation, info)): begins an episode everywhere.
    Environment i gets the seed seed + i, an integer of 32 bits that may be traced; without a seed
    each goes on with its own. It takes any handle of these environments.
    step(handle, action) -> (handle, (observation, reward, terminated, truncated, info)): action is
    int32 [num_envs]. It takes the handle that the last call returned, so that calls can't be
    ordered otherwise than they are written.

    Observations are those of the VectorEnv, float32; rewards are float32; info has action_mask,
    int8 [num_envs, actions]. jax.eval_shape tells types and shapes. The environments live as long
    as one of the functions, or a program that was compiled with one. What is wrong raises JAX's
    JaxRuntimeError with the sentence of InvalidActionError or GameOverError, and none has moved.
    """

    handle: jax.Array
    reset: Callable[..., Any]
    step: Callable[..., Any]


_registered: list[str] = []


def _register() -> None:
    """Tells XLA the custom calls, once in a process."""
    if not _registered:
        # A client that comes later would be told the calls before the type, which XLA refuses.
        jax.devices("cpu")
        kept: Any = _core.xla_type()
        jax.ffi.register_ffi_type("mallocgame_environments", kept, platform="cpu")
        for name, target in _core.xla_targets().items():
            jax.ffi.register_ffi_target(name, target, platform="cpu")
            _registered.append(name)


def xla_env(environments: Any, num_envs: int, actions: int, layout: Observations) -> XlaEnv:
    """Makes the functions of environments, an XlaEnvironments, which they keep alive."""
    _register()
    numbers, number = environments.handle(), np.int64(environments.id)
    handle = jax.ShapeDtypeStruct(numbers.shape, numbers.dtype)
    state = (
        jax.ShapeDtypeStruct((num_envs, layout.size), jnp.float32),
        jax.ShapeDtypeStruct((num_envs, actions), jnp.int8),
    )
    ends = (
        jax.ShapeDtypeStruct((num_envs,), jnp.float32),
        jax.ShapeDtypeStruct((num_envs,), jnp.bool_),
    )
    # Without it XLA would drop or share calls whose results look unused or alike.
    resets = jax.ffi.ffi_call("mallocgame_reset", (handle, *state), has_side_effect=True)
    steps = jax.ffi.ffi_call("mallocgame_step", (handle, *state, *ends), has_side_effect=True)

    def reset(handle: jax.Array, seed: Any = None) -> Any:
        seeds = np.zeros(0, np.uint32) if seed is None else _seed(seed)
        handle, rows, masks = resets(handle, seeds, environments=number)
        return handle, (layout.of(rows), {"action_mask": masks})

    def step(handle: jax.Array, action: jax.Array) -> Any:
        chosen = _array(action)
        if chosen.shape != (num_envs,) or not jnp.issubdtype(chosen.dtype, jnp.integer):
            raise InvalidInputError(
                f"action: found {chosen.dtype} of shape {chosen.shape}, allowed: integers of shape "
                f"({num_envs},)"
            )
        handle, rows, masks, rewards, terminated = steps(
            handle, chosen.astype(np.int32), environments=number
        )
        truncated = terminated & False
        info = {"action_mask": masks}
        return handle, (layout.of(rows), rewards, terminated, truncated, info)

    # The functions have no other use of the environments than to keep them.
    reset.environments = step.environments = environments  # type: ignore[attr-defined]
    # What takes a handle that is bound to the CPU runs there.
    return XlaEnv(jax.device_put(numbers, jax.devices("cpu")[0]), reset, step)


def _array(given: Any) -> Any:
    """An array of JAX as it is, and what else there is as one of NumPy, which is on no device."""
    return given if isinstance(given, jax.Array) else np.asarray(given)


def _seed(seed: Any) -> Any:
    found = _array(seed)
    if found.shape != () or not jnp.issubdtype(found.dtype, jnp.integer):
        raise InvalidInputError(
            f"seed: found {found.dtype} of shape {found.shape}, allowed: one integer"
        )
    if isinstance(found, np.ndarray) and not 0 <= found < 2**32:
        raise InvalidInputError(f"seed: found {found}, allowed: 0 to {2**32 - 1}")
    return found.astype(np.uint32)[None]
