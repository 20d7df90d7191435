"""Numerical work: linear algebra, physics, statistics, graphs, images, and loops of all kinds."""

import jax
import jax.numpy as jnp
from jax import lax

from .kept import BF16, F32, I32, KEY, U8, U32, posted


@posted(F32(128, 96))
def low_rank_approximation(a):
    u, s, vt = jnp.linalg.svd(a, full_matrices=False)
    return (u[:, :16] * s[:16]) @ vt[:16], (s > 1e-5).sum()


@posted(F32(64, 64), F32(64, 8))
def flow_of_a_linear_system(a, x):
    return jax.scipy.linalg.expm(a * 0.1) @ x


@posted(F32(8, 64, 64), F32(8, 64))
def batch_of_linear_systems(a, b):
    x = jnp.linalg.solve(a, b[..., None])[..., 0]
    sign, log = jnp.linalg.slogdet(a)
    return x, sign * log


@posted(F32(3), F32(256, 4), F32(256))
def gaussian_process_likelihood(parameters, x, y):
    def loss(parameters):
        length, size, noise = jnp.exp(parameters)
        squares = ((x[:, None] - x[None]) ** 2).sum(-1)
        k = size * jnp.exp(-0.5 * squares / length) + noise * jnp.eye(256)
        factor = jnp.linalg.cholesky(k)
        whitened = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
        return 0.5 * whitened @ whitened + jnp.log(jnp.diagonal(factor)).sum()

    return jax.value_and_grad(loss)(parameters)


@posted(F32(16, 16), F32(4, 16), F32(16, 16), F32(4, 4), F32(100, 4))
def filtered_and_smoothed(move, see, drift, noise, seen):
    def forward(state, y):
        mean, cov = state
        ahead, spread = move @ mean, move @ cov @ move.T + drift
        gain = jnp.linalg.solve(see @ spread @ see.T + noise, see @ spread).T
        state = ahead + gain @ (y - see @ ahead), spread - gain @ see @ spread
        return state, (*state, ahead, spread)

    last, steps = lax.scan(forward, (jnp.zeros(16), jnp.eye(16)), seen)

    def backward(later, given):
        mean, cov, ahead, spread = given
        gain = cov @ move.T @ jnp.linalg.inv(spread)
        mean = mean + gain @ (later[0] - ahead)
        return (mean, cov + gain @ (later[1] - spread) @ gain.T), mean

    return lax.scan(backward, last, steps, reverse=True)[1]


@posted(F32(256, 32), F32(256), F32(64, 32), KEY)
def hamiltonian_chains(x, y, chains, key):
    def energy(w):
        return jnp.logaddexp(0, -y * (x @ w)).sum() + 0.5 * w @ w

    slope = jax.vmap(jax.grad(energy))

    def step(state, key):
        w, accepted = state
        one, two = jax.random.split(key)
        p = jax.random.normal(one, w.shape)

        def leap(_, pair):
            w, p = pair
            p = p - 0.005 * slope(w)
            w = w + 0.01 * p
            return w, p - 0.005 * slope(w)

        new, moved = lax.fori_loop(0, 8, leap, (w, p))
        before = jax.vmap(energy)(w) + 0.5 * (p**2).sum(1)
        after = jax.vmap(energy)(new) + 0.5 * (moved**2).sum(1)
        taken = jnp.log(jax.random.uniform(two, (64,))) < before - after
        return (jnp.where(taken[:, None], new, w), accepted + taken), w.mean(0)

    return lax.scan(step, (chains, jnp.zeros(64, jnp.int32)), jax.random.split(key, 20))


@posted((F32(64, 128), F32(128, 64)), F32(32, 64), F32())
def adaptive_steps_of_an_equation(weights, y, end):
    def slope(y):
        return jnp.tanh(y @ weights[0]) @ weights[1]

    def go_on(state):
        return (state[1] < end) & (state[3] < 100)

    def step(state):
        y, t, h, count = state
        k1 = slope(y)
        k2 = slope(y + h * k1 / 2)
        k3 = slope(y + h * 3 / 4 * k2)
        new = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
        k4 = slope(new)
        error = jnp.abs(h * (-5 / 72 * k1 + k2 / 12 + k3 / 9 - k4 / 8)).max() / 1e-4
        good = error < 1
        factor = jnp.clip(0.9 * error ** (-1 / 3), 0.2, 5)
        return jnp.where(good, new, y), jnp.where(good, t + h, t), h * factor, count + 1

    return lax.while_loop(go_on, step, (y, 0.0, 0.01, 0))


@posted((F32(64, 256), F32(256, 64)), F32(128, 64), F32(128, 64))
def neural_equation_with_adjoint(weights, x, y):
    def slope(weights, h):
        return jnp.tanh(h @ weights[0]) @ weights[1]

    @jax.custom_vjp
    def flow(weights, h):
        return lax.fori_loop(0, 20, lambda _, h: h + 0.05 * slope(weights, h), h)

    def forward(weights, h):
        end = flow(weights, h)
        return end, (weights, end)

    def backward(kept, gradient):
        weights, end = kept

        def step(_, state):
            h, a, total = state
            change, pull = jax.vjp(slope, weights, h)
            by_weights, by_h = pull(a)
            total = jax.tree.map(lambda t, g: t + 0.05 * g, total, by_weights)
            return h - 0.05 * change, a + 0.05 * by_h, total

        none = jax.tree.map(jnp.zeros_like, weights)
        _, a, total = lax.fori_loop(0, 20, step, (end, gradient, none))
        return total, a

    flow.defvjp(forward, backward)
    return jax.grad(lambda weights: ((flow(weights, x) - y) ** 2).mean())(weights)


@posted(F32(256, 256), donate=(0,))
def vorticity_by_spectra(w):
    k = jnp.fft.fftfreq(256) * 256
    kx, ky = k[:, None], jnp.fft.rfftfreq(256)[None] * 256
    square = jnp.where(kx**2 + ky**2 == 0, 1, kx**2 + ky**2)

    def step(spectrum, _):
        flow = spectrum / square
        u, v, wx, wy = (
            jnp.fft.irfft2(1j * one)
            for one in (ky * flow, -kx * flow, kx * spectrum, ky * spectrum)
        )
        change = jnp.fft.rfft2(u * wx + v * wy)
        return (spectrum - 1e-3 * change) / (1 + 1e-6 * square), None

    return jnp.fft.irfft2(lax.scan(step, jnp.fft.rfft2(w), None, length=10)[0])


@posted(F32(9, 128, 256), F32(128, 256), I32(), donate=(0,))
def lattice_boltzmann(f, wall, steps):
    ways = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
    c = jnp.array(ways, jnp.float32)
    share = jnp.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)

    def step(_, f):
        f = jnp.stack([jnp.roll(f[i], way, (0, 1)) for i, way in enumerate(ways)])
        density = f.sum(0)
        u = jnp.einsum("ic,ihw->chw", c, f) / density
        along = jnp.einsum("ic,chw->ihw", c, u)
        rest = 1 + 3 * along + 4.5 * along**2 - 1.5 * (u**2).sum(0)
        new = f + 0.6 * (share[:, None, None] * density * rest - f)
        return jnp.where(wall > 0, f[jnp.array([0, 3, 4, 1, 2, 7, 8, 5, 6])], new)

    return lax.fori_loop(0, steps, step, f)


@posted(F32(1024, 3), F32(1024, 3), F32(1024))
def attracting_bodies(x, v, mass):
    def pull(x):
        apart = x[None] - x[:, None]
        cubes = ((apart**2).sum(-1) + 1e-3) ** -1.5
        return jnp.einsum("ijc,ij,j->ic", apart, cubes, mass)

    def step(state, _):
        x, v = state
        v = v + 0.01 * pull(x)
        return (x + 0.01 * v, v), (v**2).sum()

    return lax.scan(step, (x, v), None, length=10)


@posted(F32(4096, 2), F32(4096, 2))
def particles_in_cells(x, v):
    cells = (x * 32).astype(jnp.int32) % 32
    cell = cells[:, 0] * 32 + cells[:, 1]
    order = jnp.argsort(cell)
    mass = jax.ops.segment_sum(jnp.ones(4096), cell, 1024)
    flow = jax.ops.segment_sum(v, cell, 1024) / jnp.maximum(mass, 1)[:, None]
    heaviest = jax.ops.segment_max(jnp.linalg.norm(v, axis=1), cell, 1024)
    v = 0.9 * v + 0.1 * flow[cell]
    return (x + 0.01 * v)[order], v[order], heaviest


@posted(I32(32768), I32(32768), F32(4096), I32())
def page_rank(sources, ends, start, steps):
    degree = jnp.zeros(4096).at[sources].add(1)

    def step(_, rank):
        sent = (rank / jnp.maximum(degree, 1))[sources]
        return 0.15 / 4096 + 0.85 * jax.ops.segment_sum(sent, ends, 4096)

    return lax.fori_loop(0, steps, step, start)


@posted(F32(4096, 128), I32(16384), I32(16384), [(F32(256, 128), F32(128, 1))] * 2)
def attention_over_edges(nodes, sources, ends, layers):
    def loss(layers):
        h = nodes
        for mix, score in layers:
            pair = jnp.concatenate([h[sources], h[ends]], -1) @ mix
            e = (jax.nn.leaky_relu(pair) @ score)[:, 0]
            e = jnp.exp(e - jax.ops.segment_max(e, ends, 4096)[ends])
            e = e / jax.ops.segment_sum(e, ends, 4096)[ends]
            h = h + jax.ops.segment_sum(e[:, None] * pair, ends, 4096)
        return (h**2).mean()

    return jax.grad(loss)(layers)


@posted(I32(16384), I32(16384))
def connected_components(a, b):
    def go_on(state):
        return state[1]

    def step(state):
        labels, _ = state
        least = jnp.minimum(labels[a], labels[b])
        new = labels.at[a].min(least).at[b].min(least)
        new = new[new]
        return new, (new != labels).any()

    return lax.while_loop(go_on, step, (jnp.arange(8192), True))[0]


@posted(F32(512, 512), F32(512), F32(512))
def optimal_transport(cost, a, b):
    def step(state):
        f, g, _, at = state
        new = 0.05 * (jnp.log(a) - jax.nn.logsumexp((g - cost) / 0.05, axis=1))
        g = 0.05 * (jnp.log(b) - jax.nn.logsumexp((new[:, None] - cost) / 0.05, axis=0))
        return new, g, jnp.abs(new - f).max(), at + 1

    state = jnp.zeros(512), jnp.zeros(512), jnp.inf, 0
    f, g, _, count = lax.while_loop(lambda s: (s[2] > 1e-4) & (s[3] < 200), step, state)
    return jnp.exp((f[:, None] + g - cost) / 0.05), count


@posted(BF16(1024, 1024), F32(1024, 16))
def subspace_iteration(a, start):
    def step(_, q):
        return jnp.linalg.qr(a.astype(jnp.float32) @ q)[0]

    q = lax.fori_loop(0, 5, step, start)
    return jnp.linalg.eigvalsh(q.T @ a.astype(jnp.float32) @ q), q


@posted(F32(1024, 1024), F32(1024), I32())
def lanczos_with_any_number_of_steps(a, start, steps):
    def step(i, state):
        basis, diagonal, beside = state
        v = basis[i]
        w = a @ v
        alpha = w @ v
        w = w - alpha * v - beside[i] * basis[jnp.maximum(i - 1, 0)]
        w = w - basis.T @ (basis @ w)
        beta = jnp.linalg.norm(w)
        return basis.at[i + 1].set(w / beta), diagonal.at[i].set(alpha), beside.at[i + 1].set(beta)

    basis = jnp.zeros((33, 1024)).at[0].set(start / jnp.linalg.norm(start))
    return lax.fori_loop(0, steps, step, (basis, jnp.zeros(33), jnp.zeros(34)))


@posted(F32(64, 8), F32(8))
def roots_by_newton(x, scale):
    def residual(x):
        return jnp.tanh(x * scale) + 0.1 * jnp.sum(x**3) - 0.2

    def solve(x):
        def go_on(state):
            return (jnp.abs(residual(state[0])).max() > 1e-5) & (state[1] < 20)

        def step(state):
            x, count = state
            return x - jnp.linalg.solve(jax.jacfwd(residual)(x), residual(x)), count + 1

        return lax.while_loop(go_on, step, (x, 0))

    return jax.vmap(solve)(x)


@posted(F32(256, 128), I32(), I32())
def triangles_of_traced_loops(x, rows, steps):
    def outer(i, x):
        def inner(j, x):
            return x + 0.1 * jnp.tanh(x[i] * x[j])

        return lax.fori_loop(i, rows, inner, x)

    return lax.fori_loop(0, steps, outer, x)


@posted(F32(64, 256), F32(256, 256), F32(256, 256))
def mapped_conditionals_and_loops(x, a, b):
    def one(row):
        row = lax.cond(row.sum() > 0, lambda r: jnp.tanh(r @ a), lambda r: r @ b, row)

        def halve(r):
            return r * 0.5

        return lax.while_loop(lambda r: jnp.linalg.norm(r) > 1, halve, row)

    return jax.vmap(one)(x)


@posted(U8(512, 512), I32())
def game_of_life(cells, steps):
    def step(_, cells):
        near = lax.conv(
            cells[None, None].astype(jnp.bfloat16), jnp.ones((1, 1, 3, 3), jnp.bfloat16), (1, 1),
            "SAME",
        )[0, 0]  # fmt: skip
        alive = (near == 3) | ((cells == 1) & (near == 4))
        return alive.astype(jnp.uint8)

    return lax.fori_loop(0, steps, step, cells)


@posted(F32(2), F32())
def escape_times(center, size):
    line = jnp.linspace(-1, 1, 512)
    c = center[0] + size * line[None] + 1j * (center[1] + size * line[:, None])

    def step(_, state):
        z, count = state
        z = jnp.where(jnp.abs(z) < 2, z**2 + c, z)
        return z, count + (jnp.abs(z) < 2)

    return lax.fori_loop(0, 64, step, (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32)))[1]


@posted(F32(2048, 64, 4), F32(2048, 64), F32(2048, 3))
def rendered_along_rays(field, distances, colors):
    def loss(field):
        opaque = 1 - jnp.exp(-jax.nn.relu(field[..., 3]) * distances)
        clear = jnp.cumprod(1 - opaque + 1e-10, axis=1)
        before = jnp.concatenate([jnp.ones((2048, 1)), clear[:, :-1]], axis=1)
        seen = ((opaque * before)[..., None] * jax.nn.sigmoid(field[..., :3])).sum(1)
        return ((seen - colors) ** 2).mean()

    return jax.value_and_grad(loss)(field)


@posted(F32(4, 128, 128, 3), F32(4, 2, 3))
def warped_and_filtered_images(images, maps):
    def one(image, by):
        grid = jnp.stack(jnp.meshgrid(jnp.arange(128.0), jnp.arange(128.0), indexing="ij"))
        at = jnp.einsum("ij,jhw->ihw", by[:, :2], grid) + by[:, 2][:, None, None]
        moved = [
            jax.scipy.ndimage.map_coordinates(image[..., c], at, order=1, mode="nearest")
            for c in range(3)
        ]
        return jnp.stack(moved, axis=-1)

    warped = jax.vmap(one)(images, maps)
    around = [jnp.roll(warped, (i, j), (1, 2)) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    return jnp.median(jnp.stack(around), axis=0)


@posted(I32(16, 128), I32(16, 128))
def edit_distances(first, second):
    def one(first, second):
        def row(above, given):
            at, letter = given
            cost = jnp.minimum(above[1:] + 1, above[:-1] + (second != letter))

            def cell(left, cost):
                new = jnp.minimum(left + 1, cost)
                return new, new

            return jnp.concatenate([(at + 1)[None], lax.scan(cell, at + 1, cost)[1]]), None

        start = jnp.arange(129)
        return lax.scan(row, start, (jnp.arange(128), first))[0][-1]

    return jax.vmap(one)(first, second)


@posted(U32(65536), U32())
def hashed_and_ranked(x, seed):
    h = x ^ seed
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = (h ^ (h >> shift)) * jnp.uint32(factor)
    counts = jnp.zeros(1024, jnp.int32).at[h & 1023].add(1)
    ends = jnp.cumsum(counts)
    best, at = lax.top_k(counts, 16)
    return jnp.searchsorted(ends, jnp.arange(0, 65536, 64)), lax.population_count(h).sum(), best, at
