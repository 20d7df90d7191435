"""Models for four devices, with the ways of sharding that are most used.

They need a target of four devices, such as tpu_v5e:2x2. The mesh is abstract: no device has to be
there.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from .language import llama_decode, tokens
from .layers import attention, dense, layer_norm
from .parameters import BF16, F32, Parameters, Program, Shape, inference
from .science import mlp_training

DEVICES = 4
_AXIS = "devices"
_WHOLE, _ROWS, _COLUMNS = P(), P(_AXIS), P(None, _AXIS)


def _mesh() -> AbstractMesh:
    return AbstractMesh((DEVICES,), (_AXIS,), axis_types=(AxisType.Auto,))


def _shard(shapes, specs):
    """Gives shapes their shardings. `specs` may have one for a whole subtree."""

    def give(spec, tree):
        sharding = NamedSharding(_mesh(), spec)
        return jax.tree.map(lambda one: Shape(one.shape, one.dtype, sharding=sharding), tree)

    return jax.tree.map(give, specs, shapes, is_leaf=lambda leaf: isinstance(leaf, P))


def llama_tensor_parallel(batch: int, layers: int, cached: int) -> Program:
    """llama_decode() with heads and hidden units on all devices.

    Each layer adds up twice over the devices.
    """
    function, (parameters, cache, ids, position) = llama_decode(batch, layers, cached)
    one_layer = [_WHOLE, *[_COLUMNS] * 3, _ROWS, _WHOLE, *[_COLUMNS] * 2, _ROWS]
    specs = [_WHOLE, *one_layer * layers, _WHOLE, _COLUMNS]
    heads = P(None, None, _AXIS)
    return function, _shard((parameters, cache, ids, position), (specs, heads, _WHOLE, _WHOLE))


def mlp_data_parallel(batch: int) -> Program:
    """mlp_training() with a part of the batch on each device, which have all parameters.

    Gradients are added up over the devices.
    """
    function, (*state, inputs, labels) = mlp_training(batch)
    return function, _shard((*state, inputs, labels), (*[_WHOLE] * len(state), _ROWS, _ROWS))


def mlp_fully_sharded(batch: int) -> Program:
    """mlp_training() with a part of the batch and of all parameters on each device.

    Weights are gathered before they are used, and gradients are scattered.
    """
    function, (*state, inputs, labels) = mlp_training(batch)
    parts = [
        jax.tree.map(lambda one: _ROWS if one.shape and one.shape[0] % DEVICES == 0 else _WHOLE, s)
        for s in state
    ]
    return function, _shard((*state, inputs, labels), (*parts, _ROWS, _ROWS))


def experts_all_to_all(batch: int, layers: int, length: int) -> Program:
    """The best of eight experts for each token, two experts on each device.

    Tokens go to the devices of their experts and back. An expert takes as many tokens of a device
    as are there for it on average, and a quarter more.
    """
    width, experts = 768, 8
    here = batch // DEVICES * length  # tokens of one device
    capacity = here * 5 // (4 * experts)
    own = experts // DEVICES

    def experts_layer(p, x, exchange):
        h = layer_norm(p, x).reshape(-1, width)
        gates = jax.nn.softmax((h @ p(width, experts)).astype(F32))
        one_hot = jax.nn.one_hot(gates.argmax(-1), experts)
        place = (jnp.cumsum(one_hot, 0) * one_hot - 1).max(-1)
        dispatch = one_hot[:, :, None] * jax.nn.one_hot(place, capacity)[:, None]
        y = jnp.einsum("tec,td->ecd", dispatch.astype(BF16), h)
        y = exchange(y, (own, DEVICES * capacity, width), 0, 1)
        y = jax.nn.gelu(jnp.einsum("ecd,edf->ecf", y, p(own, width, 3072)))
        y = jnp.einsum("ecf,efd->ecd", y, p(own, 3072, width))
        y = exchange(y, (experts, capacity, width), 1, 0)
        combine = (dispatch * gates.max(-1)[:, None, None]).astype(BF16)
        return jnp.einsum("tec,ecd->td", combine, y).reshape(x.shape)

    def model(exchange, p, ids):
        x = p(32000, width)[ids]
        for _ in range(layers):
            q, k, v = jnp.split(dense(p, layer_norm(p, x), 3 * width), 3, -1)
            x = x + dense(p, attention(q, k, v, 12, True), width)
            x = x + experts_layer(p, x, exchange)
        return layer_norm(p, x)

    def reshaped(y, shape, split, joined):
        return y.reshape(shape)

    def exchanged(y, shape, split, joined):
        return lax.all_to_all(y, _AXIS, split, joined, tiled=True)

    # The shapes on one device are written down without the others.
    _, (local, _) = inference(partial(model, reshaped), tokens(batch // DEVICES, length))
    specs = [_ROWS if shape.shape[0] == own else _WHOLE for shape in local]
    function = jax.shard_map(
        lambda values, ids: model(exchanged, Parameters(values), ids),
        mesh=_mesh(),
        in_specs=(specs, _ROWS),
        out_specs=_ROWS,
    )
    parameters = [
        Shape((experts, *shape.shape[1:]), shape.dtype) if spec == _ROWS else shape
        for shape, spec in zip(local, specs, strict=True)
    ]
    return function, _shard((parameters, tokens(batch, length)), (specs, _ROWS))
