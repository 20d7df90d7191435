"""Other orders of instructions compute the same: run one instruction at a time (hlo_values.py).

Small JAX programs are compiled for a TPU and run on the CPU. The modules of the corpus are run with
formulas for values, which say of each array how it was computed. With -s each test prints its
figures.
"""

import gzip
import pathlib
import random
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hlo_text import Module, UnsupportedError
from hlo_values import Formulas, Numbers, Run
from xla_programs import SHAPE, jax

import mallocgame as mg
import mallocgame.xla as mgx

pytestmark = pytest.mark.full

jnp, lax = jax.numpy, jax.lax
MODULES = pathlib.Path(__file__).parents[2] / "benchmarks/programs/hlo/core"
# An instruction of the schedule: the callers, and its name. A loop stands there twice: its entry,
# which has a key that ends in _ENTRY, and behind its body its exit.
Key = tuple[str, ...]
_ENTRY = "entry"
Edges = set[tuple[str, str]]


class Orders:
    """The orders of a program's instructions, by computation of its module."""

    def __init__(self, program: mg.Program, module: Module) -> None:
        self.program, self.module = program, module
        self.own = {name: list(c.instructions) for name, c in module.computations.items()}
        self.keys = list(self._keys(self.own, module.entry, ()))
        names = [key[-2] if key[-1] == _ENTRY else key[-1] for key in self.keys]
        assert names == program.instruction_names
        self._tick = {key: tick for tick, key in enumerate(self.keys)}
        self.computations = sorted(
            {self._computation(key) for key in self.keys if key[-1] != _ENTRY}
        )
        self.kept: dict[str, Edges] = {name: set() for name in self.computations}
        for first, second in program.dependences.tolist():
            one, other = self.keys[first], self.keys[second]
            assert one[:-1] == other[:-1]
            self.kept[self._computation(one)].add((one[-1], other[-1]))
        self.values: dict[str, Edges] = {
            name: {
                (operand, one.name)
                for one in module.computations[name].instructions.values()
                for operand in one.operands
            }
            for name in self.computations
        }

    def _computation(self, key: Key) -> str:
        name = self.module.entry
        for caller in key[:-1]:
            name = caller.split("/")[1]
        return name

    def _keys(self, order: dict[str, list[str]], computation: str, path: Key) -> Iterator[Key]:
        for name in order[computation]:
            one = self.module.computations[computation].instructions[name]
            if one.opcode == "while":
                yield (*path, name, _ENTRY)
            for callee in self.module.ordered_callees(one):
                yield from self._keys(order, callee, (*path, f"{name}/{callee}"))
            yield (*path, name)

    def ticks(self, order: dict[str, list[str]]) -> np.ndarray:
        keys = self._keys(order, self.module.entry, ())
        return np.array([self._tick[key] for key in keys], np.int32)

    def draw(self, edges: dict[str, Edges], generator: random.Random) -> dict[str, list[str]]:
        """Draws an order that keeps `edges`: any instruction that is ready comes next."""
        return self.own | {
            name: _sorted(self.own[name], edges[name], generator.randrange)
            for name in self.computations
        }

    def swapped(self, computation: str, first: str, second: str) -> dict[str, list[str]]:
        """An order in which all dependences hold but one, of which both stand side by side."""
        names, edges = self.own[computation], self.kept[computation]
        before = _ancestors(second, edges) | _ancestors(first, edges)
        sequence = [name for name in names if name in before and name not in (first, second)]
        rest = [name for name in names if name not in before and name not in (first, second)]
        return self.own | {computation: [*sequence, second, first, *rest]}

    def run(self, order: dict[str, list[str]], values: object) -> list[object]:
        place = {name: at for c in self.computations for at, name in enumerate(order[c])}
        return Run(self.module, place, values).results()


def _sorted(names: list[str], edges: Edges, pick: Callable[[int], int]) -> list[str]:
    waits = dict.fromkeys(names, 0)
    after: dict[str, list[str]] = {name: [] for name in names}
    for _, second in edges:
        waits[second] += 1
    for first, second in sorted(edges):
        after[first].append(second)
    ready = [name for name in names if waits[name] == 0]
    order = []
    while ready:
        order.append(ready.pop(pick(len(ready))))
        for name in after[order[-1]]:
            waits[name] -= 1
            if waits[name] == 0:
                ready.append(name)
    assert len(order) == len(names)
    return order


def _ancestors(name: str, edges: Edges) -> set[str]:
    before: dict[str, list[str]] = {}
    for first, second in edges:
        before.setdefault(second, []).append(first)
    found, left = {name}, [name]
    while left:
        for one in before.get(left.pop(), ()):
            if one not in found:
                found.add(one)
                left.append(one)
    return found


def without_help(module: Module) -> Module:
    """Leaves out what XLA says of storage: control predecessors, and copies.

    XLA copies an array that is still read when it is written over in some order. Without the copy
    the reader has to come first, as it does in the order that stands. Where it doesn't, the copy
    stays.
    """
    module = module.without_control_predecessors()
    own = Run(module, _places(module), Formulas(module)).results()
    for computation in list(module.computations.values()):
        for one in list(computation.instructions.values()):
            if one.opcode != "copy" or one.text.split(" copy(")[0] not in one.inside:
                continue
            try:
                other = module.without_copy(computation.name, one.name)
                if same(Run(other, _places(other), Formulas(other)).results(), own):
                    module = other
            except UnsupportedError:  # A result has to lie elsewhere.
                pass
    return module


def _places(module: Module) -> dict[str, int]:
    return {
        name: place
        for computation in module.computations.values()
        for place, name in enumerate(computation.instructions)
    }


def same(one: list[object], other: list[object]) -> bool:
    return all(
        a == b if isinstance(a, bytes) else np.array_equal(a, b, equal_nan=a.dtype.kind != "b")
        for a, b in zip(one, other, strict=True)
    )


def check(
    orders: Orders, values: object, count: int, seed: int, own: list[object]
) -> tuple[str, int]:
    """Checks `count` legal orders, as many that keep values only, and broken dependences.

    Returns the figures in words, and how many orders computed something else.
    """
    generator = random.Random(seed)
    others = refused = wrong = 0
    for _ in range(count):
        order = orders.draw(orders.kept, generator)
        orders.program.reordered(orders.ticks(order))  # It is legal.
        assert same(orders.run(order, values), own)
        others += order != orders.own
    # Orders that know nothing of storage. What computes something else is refused.
    for _ in range(count):
        order = orders.draw(orders.values, generator)
        differs = not same(orders.run(order, values), own)
        try:
            orders.program.reordered(orders.ticks(order))
            assert not differs
        except mg.InvalidInputError:
            refused += 1
            wrong += differs
    edges = [(name, *edge) for name in orders.computations for edge in sorted(orders.kept[name])]
    broken = generator.sample(edges, min(len(edges), count))
    for computation, first, second in broken:
        ticks = orders.ticks(orders.swapped(computation, first, second))
        with pytest.raises(mg.InvalidInputError, match="it must stand before") as refusal:
            orders.program.reordered(ticks)
        assert f"'{first}'" in str(refusal.value)
        assert f"'{second}'" in str(refusal.value)
    figures = (
        f"{orders.program.ticks} instructions, {len(edges)} dependences; {count} legal orders, "
        f"{others} not the own one, all equal; of {count} that keep values only {refused} refused, "
        f"{wrong} of which compute something else; {len(broken)} broken dependences refused"
    )
    return figures, wrong


# Small, because a CPU runs them. By name: a function and its arguments.
F32, I32 = "float32", "int32"
Arguments = tuple[tuple[tuple[int, ...], str], ...]
PROGRAMS: dict[str, tuple[Callable[..., object], Arguments]] = {}


def program(*arguments: tuple[tuple[int, ...], str]) -> Callable[[Callable], Callable]:
    def keep(function: Callable[..., object]) -> Callable[..., object]:
        PROGRAMS[function.__name__] = (function, arguments)
        return function

    return keep


@program(((128, 128), F32), ((128, 128), F32), ((128, 128), F32), ((16, 128), F32))
def branches(a, b, c, x):
    return jnp.tanh(x @ a) + jax.nn.relu(x @ b), jnp.sin(x @ c), (x @ a).sum()


@program(((128, 128), F32), ((128,), F32), ((128, 8), F32), ((16, 128), F32), ((16, 8), F32))
def dense_step(w, b, v, x, y):
    def loss(w, b, v):
        return jnp.mean((jnp.tanh(x @ w + b) @ v - y) ** 2)

    found, gradients = jax.value_and_grad(loss, (0, 1, 2))(w, b, v)
    return found, [p - 0.1 * g for p, g in zip((w, b, v), gradients, strict=True)]


@program(*[((64, 64), F32)] * 9, ((16, 64), F32))
def adam(w1, w2, w3, m1, m2, m3, v1, v2, v3, x):
    gradients = jax.grad(lambda w: jnp.sum(jnp.tanh(jnp.tanh(x @ w[0]) @ w[1]) @ w[2]))
    new = []
    for p, m, v, g in zip(
        (w1, w2, w3), (m1, m2, m3), (v1, v2, v3), gradients((w1, w2, w3)), strict=True
    ):
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        new.append((p - 0.01 * m / (jnp.sqrt(jnp.abs(v)) + 1), m, v))
    return new


@program(((4, 16, 32), F32), *[((32, 32), F32)] * 4)
def attention(x, q, k, v, o):
    scores = jnp.einsum("bld,bmd->blm", x @ q, x @ k) / 6
    return x + jax.nn.softmax(scores) @ (x @ v) @ o


@program(((16, 4, 32), F32), ((16, 4, 32), F32), ((4, 32), F32), *[((32, 32), F32)] * 3)
def cache(keys, values, x, q, k, v):
    before = keys.max(0) - values.min(0)
    keys = lax.dynamic_update_slice(keys, (x @ k)[None], (3, 0, 0))
    values = lax.dynamic_update_slice(values, (x @ v)[None], (3, 0, 0))
    scores = jax.nn.softmax(jnp.einsum("bd,tbd->bt", x @ q, keys))
    return keys, values, jnp.einsum("bt,tbd->bd", scores, values), before


@program(((8, 64), F32), ((64, 64), F32))
def loop(x, w):
    return lax.fori_loop(0, 4, lambda _, state: jnp.tanh(state @ w), x)


@program(((6, 8, 32), F32), ((8, 32), F32), ((32, 96), F32), ((32, 96), F32))
def gru(xs, state, w, u):
    def step(state, x):
        z, r, n = jnp.split(x @ w, 3, -1)
        a, b, c = jnp.split(state @ u, 3, -1)
        gate = jax.nn.sigmoid(z + a)
        state = gate * state + (1 - gate) * jnp.tanh(n + jax.nn.sigmoid(r + b) * c)
        return state, state.sum(-1)

    return lax.scan(step, state, xs)


@program(*[((8, 32), F32)] * 4, ((32, 32), F32), ((32, 32), F32))
def rnn_gradient(one, two, three, state, w, u):
    def loss(w, u):
        after, outputs = state, 0.0
        for x in (one, two, three):
            after, outputs = jnp.tanh(x @ w + after @ u), outputs + after.mean()
        return jnp.sum(after**2) + outputs

    return jax.grad(loss, (0, 1))(w, u)


@program(*[((16, 16, 16, 3), F32)] * 2, ((3, 3, 3, 8), F32), ((3, 3, 8, 8), F32), ((8, 10), F32))
def convolutions(left, right, a, b, head):
    def convolve(x, kernel):
        dims = ("NHWC", "HWIO", "NHWC")
        made = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=dims)
        return jax.nn.relu(made)

    one, other = (convolve(convolve(x, a), b).mean((1, 2)) for x in (left, right))
    return one @ head, other.max(1), one * other


@program(((64, 64), F32), ((64, 32), F32), ((32, 8), F32), ((32, 8), F32))
def graph_convolution(adjacency, x, w, v):
    h = jax.nn.relu(adjacency @ (x @ w))
    return adjacency @ h, jax.nn.relu(x @ v).sum(0)


@program(((32, 32), F32), ((8,), I32), ((8, 32), F32))
def scatter(table, rows, updates):
    return table.at[rows % 32].add(updates), table.sum(0), table[rows % 32]


@program(((64,), F32), ((64,), F32), ((64, 8), F32))
def sorting(keys, values, x):
    order = jnp.argsort(keys)
    return jnp.cumsum(values[order]), x[order].sum(1), jnp.sort(values)


@program(((), F32), ((32, 32), F32), ((32, 32), F32))
def conditional(level, a, b):
    c = lax.cond(level > 0, lambda: jnp.tanh(a @ b) @ a, lambda: (a - b) @ b)
    return c + a, (a @ b).max()


@program(((8, 8), F32))
def elimination(a):
    def step(i, m):
        row = m[i] / (m[i, i] + 3)
        m = m.at[i].set(row)
        return m - jnp.outer(jnp.where(jnp.arange(8) == i, 0, m[:, i]), row) * 0.1

    return lax.fori_loop(0, 8, step, a)


@program(((32, 32), F32), ((32, 32), F32))
def two_loops(a, b):
    one = lax.fori_loop(0, 3, lambda _, s: jnp.sin(s @ b / 8), a)
    other = lax.fori_loop(0, 5, lambda _, s: jnp.cos(s @ a / 8), b)
    return one + other, one @ other


@program(((8, 32), F32), ((32, 32), F32))
def nested(x, w):
    def outer(i, s):
        inner = lax.fori_loop(0, 3, lambda _, t: jnp.tanh(t @ w), s)
        return s.at[i].set(inner[0]) + inner * 0.5

    return lax.fori_loop(0, 4, outer, x)


@program(((128, 8), F32), ((6, 8), F32))
def k_means(points, centres):
    def step(_, c):
        chosen = jax.nn.softmax(-((points[:, None] - c) ** 2).sum(-1))
        return (chosen.T @ points) / (chosen.sum(0)[:, None] + 1)

    return lax.fori_loop(0, 3, step, centres)


@program(((64, 32), F32), ((32, 4), F32), ((4, 32, 32), F32))
def experts(x, gate, w):
    shares = jax.nn.softmax(x @ gate)
    outputs = jnp.einsum("td,edf->etf", x, w)
    return jnp.einsum("tn,ntf->tf", shares, jax.nn.relu(outputs)), shares.mean(0)


@program(((16, 64), F32), ((64,), F32), ((64,), F32), ((64, 64), F32))
def normalised(x, scale, bias, w):
    y = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-3)
    return jax.nn.gelu((y * scale + bias) @ w) + x, x.std()


@program(((10, 16), F32), ((16, 16), F32))
def stack(x, w):
    def step(i, state):
        buffer, row = state
        row = jnp.tanh(row @ w) + buffer[i]
        return lax.dynamic_update_slice(buffer, row[None], (i, 0)), row

    return lax.fori_loop(0, 10, step, (x, x[0] * 0.5)), x.sum()


@program(((64, 128), F32), *[((128, 128), F32)] * 6)
def square_layers(x, *weights):
    for w in weights:
        x = jnp.tanh(x @ w)
    return x


# In these a reader has to come before what writes over the array, if nothing is copied.
OVERWRITTEN = ("cache", "scatter", "stack", "two_loops")


@pytest.fixture(scope="module")
def compiler() -> Iterator[mgx.Compiler]:
    with mgx.Compiler(mgx.find_target("tpu_v5e")) as compiler:
        yield compiler


def arguments_of(name: str) -> list[np.ndarray]:
    generator = np.random.default_rng(len(name))
    return [
        generator.integers(0, 1000, shape, dtype)
        if dtype == I32
        else np.asarray(0.3 * generator.standard_normal(shape), dtype)
        for shape, dtype in PROGRAMS[name][1]
    ]


def check_program(name: str, compiler: mgx.Compiler, count: int) -> int:
    """Returns how many orders that know nothing of storage computed something else."""
    function, arguments = PROGRAMS[name]
    shapes = [SHAPE(*argument) for argument in arguments]
    captured = mgx.capture(function, *shapes, target="tpu_v5e", compiler=compiler, name=name)
    numbers = arguments_of(name)
    module = Module(captured.before)
    orders = Orders(captured.program, module)
    values = Numbers(module, numbers)
    own = orders.run(orders.own, values)
    # A TPU multiplies in bfloat16.
    for result, expected in zip(own, jax.tree.leaves(jax.jit(function)(*numbers)), strict=True):
        np.testing.assert_allclose(result, expected, rtol=0.05, atol=0.05)
    figures, wrong = check(orders, values, count, 1, own)
    print(f"{name}: {figures}")
    bare = without_help(module)
    orders = Orders(mg.import_hlo(bare.proto, hardware="tpu_v5e", name=name), bare)
    figures, wrong_bare = check(orders, Numbers(bare, numbers), count, 2, own)
    print(f"{name} without copies and control predecessors: {figures}")
    return wrong + wrong_bare


@pytest.mark.parametrize("name", OVERWRITTEN[:2])
def test_some_orders_compute_the_same(name, compiler):
    assert check_program(name, compiler, 10) > 0


@pytest.mark.weekly
@pytest.mark.parametrize("name", PROGRAMS)
def test_legal_orders_compute_the_same(name, compiler):
    wrong = check_program(name, compiler, 50)
    assert wrong > 0 or name not in OVERWRITTEN


@pytest.mark.weekly
@pytest.mark.parametrize(
    "path", sorted(MODULES.glob("*/*/pre_msa.hlo.pb.gz")), ids=lambda p: "/".join(p.parts[-3:-1])
)
def test_orders_of_the_corpus_compute_the_same(path):
    module = Module(gzip.decompress(path.read_bytes()))
    orders = Orders(mg.import_hlo(path, hardware=path.parts[-3]), module)
    values = Formulas(module)
    own = orders.run(orders.own, values)
    figures, _ = check(orders, values, 20 if orders.program.ticks < 1000 else 5, 3, own)
    print(f"{path.parts[-2]}, {path.parts[-3]}: {figures}")
