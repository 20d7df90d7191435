"""Whole models, the suite `large`: 24 programs of 2,000 to 50,000 accesses, as people write them.

Dense decoders, mixtures of experts, encoders with decoders, vision, diffusion and recurrence; in
training, over a whole text (prefill) and word by word (decode); with the layers one by one or as
passes of a loop; on one device, on 4 and on 16. Programs in use give up what they replace
(donation), and so do these.
"""

import dataclasses
import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from .language import tokens
from .large import noisy_latents, time_embedding, unet
from .layers import attention, batch_norm, block, conv, cross_entropy, dense, layer_norm, rms_norm
from .parameters import BF16, F32, I32, Parameters, Program, Shape, inference, repeated, training
from .vision import images, resnet, vision_tower


@dataclasses.dataclass(frozen=True)
class Devices:
    """How many share a batch, and how many each matrix. All of them share the parameters."""

    data: int = 1
    model: int = 1

    def over(self, *axes: str | None) -> NamedSharding | None:
        """Returns how an array lies whose axes are shared out over "data" and "model"."""
        if self.data * self.model == 1:
            return None
        sizes, names = (self.data, self.model), ("data", "model")
        return NamedSharding(AbstractMesh(sizes, names, axis_types=(AxisType.Auto,) * 2), P(*axes))

    def program(self, function, args, donated=()) -> Program:
        """Has what has no place of its own on every device, and gives up the donated arguments."""
        whole = self.over()

        def place(one):
            return Shape(one.shape, one.dtype, sharding=one.sharding or whole)

        return jax.jit(function, donate_argnums=donated), jax.tree.map(place, args)


class Again:
    """Parameters that are the same each time: start() hands them out from the first on."""

    def __init__(self, p: Parameters) -> None:
        self._p, self._next = p, 0
        self._known: list[jax.Array] = []

    def start(self) -> None:
        self._next = 0

    def __call__(self, *shape: int, **options):
        if self._next == len(self._known):
            self._known.append(self._p(*shape, **options))
        self._next += 1
        return self._known[self._next - 1]


@dataclasses.dataclass(frozen=True)
class Decoder:
    """A transformer that sees what is before, with rotary positions and grouped queries.

    experts: of which each token goes to the best two; 0 is one network for all.
    norm_heads: norms of queries and keys, as in Qwen 3.
    norm_after: norms behind the parts too, and every second layer sees only `window` positions, as
    in Gemma 2.
    in_a_pass: layers that are one pass of a loop; 0 has no loop.
    """

    layers: int
    width: int
    heads: int
    kv_heads: int
    widened: int
    words: int = 32000
    experts: int = 0
    norm_heads: bool = False
    norm_after: bool = False
    window: int = 1024
    in_a_pass: int = 0
    devices: Devices = Devices()

    @property
    def head(self) -> int:
        return self.width // self.heads

    def _spread(self, p, x, width):
        """A matrix that makes x wider, each device some of its columns."""
        return x @ p(x.shape[-1], width, sharding=self.devices.over("data", "model"))

    def _gather(self, p, x):
        """A matrix back to the model's width, each device some of its rows."""
        return x @ p(x.shape[-1], self.width, sharding=self.devices.over("model", "data"))

    def _attend(self, p, x, cache, position, local):
        batch, length, _ = x.shape
        size, groups = self.head, self.heads // self.kv_heads
        q, k, v = (
            self._spread(p, x, heads * size).reshape(batch, length, heads, size)
            for heads in (self.heads, self.kv_heads, self.kv_heads)
        )
        if self.norm_heads:
            q, k = rms_norm(p, q), rms_norm(p, k)
        at = jnp.arange(length) + (0 if cache is None else position)
        angle = at[:, None] * 1e4 ** (-jnp.arange(0, size, 2) / size)
        cos, sin = (wave(angle)[:, None].astype(BF16) for wave in (jnp.cos, jnp.sin))

        def rotate(z):
            a, b = jnp.split(z, 2, -1)
            return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)

        q, k = rotate(q), rotate(k)
        if cache is not None:
            k, v = (
                lax.dynamic_update_slice(old, new, (0, position, 0, 0))
                for old, new in zip(cache, (k, v), strict=True)
            )
        seen = at[:, None] >= jnp.arange(k.shape[1])
        if local:
            seen &= at[:, None] < jnp.arange(k.shape[1]) + self.window
        q = q.reshape(batch, length, self.kv_heads, groups, size)
        scores = jnp.einsum("btkgd,bskd->bkgts", q, k).astype(F32) / math.sqrt(size)
        weights = jax.nn.softmax(jnp.where(seen, scores, -1e9), -1).astype(BF16)
        mixed = jnp.einsum("bkgts,bskd->btkgd", weights, v)
        return self._gather(p, mixed.reshape(batch, length, -1)), (k, v)

    def _widen(self, p, x):
        if self.experts:
            return self._mix(p, x.reshape(-1, self.width)).reshape(x.shape)
        gate, up = (self._spread(p, x, self.widened) for _ in range(2))
        return self._gather(p, jax.nn.silu(gate) * up)

    def _mix(self, p, x):
        """Experts lie on different devices. Each has room for a quarter more than its share."""
        count, each = len(x), self.experts
        capacity = count if count < 4 * each else 2 * count // each * 5 // 4
        gates = jax.nn.softmax((x @ p(self.width, each)).astype(F32))
        best, chosen = lax.top_k(gates, 2)
        to = jax.nn.one_hot(chosen.T.reshape(-1), each, dtype=I32)
        place = ((jnp.cumsum(to, 0) - 1) * to).sum(-1)
        sent = (to[:, :, None] * jax.nn.one_hot(place, capacity)[:, None]).reshape(
            2, count, each, -1
        )
        back = jnp.einsum("atec,ta->tec", sent, best).astype(BF16)
        wide, narrow = (each, self.width, self.widened), (each, self.widened, self.width)
        own = self.devices.over("model", "data")
        y = jnp.einsum("tec,td->ecd", sent.sum(0).astype(BF16), x)
        gate, up = (jnp.einsum("ecd,edf->ecf", y, p(*wide, sharding=own)) for _ in range(2))
        y = jnp.einsum("ecf,efd->ecd", jax.nn.silu(gate) * up, p(*narrow, sharding=own))
        return jnp.einsum("tec,ecd->td", back, y)

    def layer(self, p, x, cache=None, position=None, local=False):
        """Returns what comes out, and keys and values."""
        after = functools.partial(rms_norm, p) if self.norm_after else lambda y: y
        y, kv = self._attend(p, rms_norm(p, x), cache, position, local)
        x = x + after(y)
        return x + after(self._widen(p, rms_norm(p, x))), kv

    def _table(self, p):
        return p(self.words, self.width, sharding=self.devices.over("model", "data"))

    def _stack(self, p, x, cache=None, position=None):
        """All layers, and the new cache."""
        if self.in_a_pass:

            def one_pass(p, x, _):
                for _ in range(self.in_a_pass):
                    x, _ = self.layer(p, x)
                return x, None

            x, new = repeated(p, one_pass, self.layers // self.in_a_pass, x, remat=True)
        else:
            new = []
            for i in range(self.layers):
                local = self.norm_after and i % 2 == 0
                x, kv = self.layer(p, x, cache and cache[i], position, local)
                new.append(kv)
        return rms_norm(p, x), new

    def _tokens(self, batch, length):
        return Shape((batch, length), I32, sharding=self.devices.over("data"))

    def train(self, batch: int, length: int) -> Program:
        """A step of AdamW."""

        def loss(p, ids, labels):
            table = self._table(p)
            return cross_entropy(self._stack(p, table[ids])[0] @ table.T, labels)

        function, args = training(loss, *[self._tokens(batch, length)] * 2, optimizer="adamw")
        return self.devices.program(function, args, (0, 1, 2))

    def prefill(self, batch: int, length: int) -> Program:
        """The first word after a text, and the keys and values of the text."""

        def model(p, ids):
            table = self._table(p)
            x, cache = self._stack(p, table[ids])
            return x[:, -1] @ table.T, cache

        return self.devices.program(*inference(model, self._tokens(batch, length)))

    def decode(self, batch: int, cached: int, steps: int = 1) -> Program:
        """The next words, each the best one after those before."""

        def model(p, cache, ids, position):
            p = Again(p)
            told = []
            for step in range(steps):
                p.start()
                table = self._table(p)
                x, cache = self._stack(p, table[ids], cache, position + step)
                ids = jnp.argmax(x @ table.T, -1)
                told.append(ids)
            return told, cache

        shape, split = (batch, cached, self.kv_heads, self.head), ("data", None, "model")
        kv = Shape(shape, BF16, sharding=self.devices.over(*split))
        inputs = [(kv, kv)] * self.layers, self._tokens(batch, 1), Shape((), I32)
        return self.devices.program(*inference(model, *inputs), 1)


def _trained(loss, *inputs) -> Program:
    return Devices().program(*training(loss, *inputs, optimizer="adamw"), (0, 1, 2))


def gpt2(layers: int, width: int, batch: int, length: int) -> Program:
    def loss(p, ids, labels):
        table = p(50257, width)
        x = table[ids] + p(length, width)
        for _ in range(layers):
            x = block(p, x, width // 64, causal=True)
        return cross_entropy(layer_norm(p, x) @ table.T, labels)

    return _trained(loss, tokens(batch, length), tokens(batch, length))


def translator(layers: int, width: int, batch: int, length: int) -> Program:
    """A training step of an encoder and a decoder over words."""

    def loss(p, source, target, labels):
        table, positions = p(32128, width), p(length, width)
        x, y = table[source] + positions, table[target] + positions
        for _ in range(layers):
            x = block(p, x, width // 64)
        memory = layer_norm(p, x)
        for _ in range(layers):
            y = block(p, y, width // 64, causal=True, memory=memory)
        return cross_entropy(layer_norm(p, y) @ table.T, labels)

    return _trained(loss, *[tokens(batch, length)] * 3)


def whisper(layers: int, width: int, batch: int, words: int) -> Program:
    """Half a minute of sound, and the words so far."""

    def model(p, sound, ids):
        x = jax.nn.gelu(conv(p, sound[:, :, None], width))
        x = jax.nn.gelu(conv(p, x, width, stride=2))[:, :, 0]
        x = x + p(x.shape[1], width)
        for _ in range(layers):
            x = block(p, x, width // 64)
        memory, table = layer_norm(p, x), p(51865, width)
        y = table[ids] + p(words, width)
        for _ in range(layers):
            y = block(p, y, width // 64, causal=True, memory=memory)
        return layer_norm(p, y) @ table.T

    return inference(model, Shape((batch, 3000, 80), BF16), tokens(batch, words))


def vit(layers: int, width: int, batch: int) -> Program:
    def loss(p, x, labels):
        x = vision_tower(p, x, 16, width, layers, width // 64)
        return cross_entropy(dense(p, x[:, 0], 1000), labels)

    return _trained(loss, images(batch), Shape((batch,), I32))


def swin(depths: tuple[int, ...], width: int, batch: int, window: int = 7) -> Program:
    """Attention within windows, which every second block has moved by half."""

    def attend(p, x, heads, moved):
        count, size, _, channels = x.shape
        x = jnp.roll(x, (-(window // 2),) * 2, (1, 2)) if moved else x
        x = x.reshape(count, size // window, window, size // window, window, channels)
        x = x.swapaxes(2, 3).reshape(-1, window**2, channels)
        q, k, v = jnp.split(dense(p, x, 3 * channels), 3, -1)
        x = dense(p, attention(q, k, v, heads), channels)
        x = x.reshape(count, size // window, size // window, window, window, channels)
        x = x.swapaxes(2, 3).reshape(count, size, size, channels)
        return jnp.roll(x, (window // 2,) * 2, (1, 2)) if moved else x

    def model(p, x):
        x = layer_norm(p, conv(p, x, width, 4, 4))
        for stage, depth in enumerate(depths):
            channels = width << stage
            if stage:
                x = conv(p, layer_norm(p, x), channels, 2, 2)
            for i in range(depth):
                x = x + attend(p, layer_norm(p, x), channels // 32, i % 2)
                y = jax.nn.gelu(dense(p, layer_norm(p, x), 4 * channels))
                x = x + dense(p, y, channels)
        return dense(p, layer_norm(p, x.mean((1, 2))), 1000)

    return inference(model, images(batch))


def resnet_training(depths: tuple[int, ...], batch: int) -> Program:
    def loss(p, x, labels):
        return cross_entropy(resnet(p, x, depths, batch_norm), labels)

    return _trained(loss, images(batch), Shape((batch,), I32))


def _missed(noise, target):
    return jnp.square((noise - target).astype(F32)).mean()


def unet_training(widths: tuple[int, ...], batch: int, size: int) -> Program:
    def loss(p, x, t, text, noise):
        return _missed(unet(p, x, t, text, widths), noise)

    latents, *others = noisy_latents(batch, size)
    return _trained(loss, latents, *others, latents)


def diffusion_transformer(layers: int, width: int, batch: int, size: int, steps: int) -> Program:
    """Takes noise away in several steps. The time scales and gates every part of a layer (DiT)."""

    def scaled(x, shift, scale):
        wide = x.astype(F32)
        mean, variance = wide.mean(-1, keepdims=True), wide.var(-1, keepdims=True)
        normal = ((wide - mean) * lax.rsqrt(variance + 1e-6)).astype(x.dtype)
        return normal * (1 + scale) + shift

    def layer(p, x, time):
        to = jnp.split(dense(p, jax.nn.silu(time), 6 * width)[:, None], 6, -1)
        q, k, v = jnp.split(dense(p, scaled(x, *to[:2]), 3 * width), 3, -1)
        x = x + to[2] * dense(p, attention(q, k, v, width // 72), width)
        y = jax.nn.gelu(dense(p, scaled(x, *to[3:5]), 4 * width))
        return x + to[5] * dense(p, y, width)

    def model(p, x, t):
        p = Again(p)
        for step in range(steps):
            p.start()
            time = time_embedding(p, t - step, 256, width)
            y = conv(p, x, width, 2, 2).reshape(batch, -1, width)
            y = y + p(y.shape[1], width)
            for _ in range(layers):
                y = layer(p, y, time)
            y = dense(p, layer_norm(p, y), 16).reshape(batch, size // 2, size // 2, 2, 2, 4)
            x = x - 0.1 * y.swapaxes(2, 3).reshape(x.shape)
        return x

    latents = Shape((batch, size, size, 4), BF16)
    return Devices().program(*inference(model, latents, Shape((batch,), I32)), 1)


def lstm_translator(layers: int, width: int, batch: int, length: int) -> Program:
    """A training step of recurrent layers over words, every position on its own (no loop)."""

    def recurrent(p, xs):
        kernel, bias = p(2 * width, 4 * width), p(4 * width)
        h = c = jnp.zeros((batch, width), BF16)
        out = []
        for x in xs:
            i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ kernel + bias, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            out.append(h)
        return out

    def stack(p, ids):
        xs = [*p(32000, width)[ids.T]]
        for _ in range(layers):
            xs = [x + y for x, y in zip(xs, recurrent(p, xs), strict=True)]
        return jnp.stack(xs, 1)

    def loss(p, source, target, labels):
        memory, y = stack(p, source), stack(p, target)
        y = y + attention(dense(p, y, width), memory, memory, 1)
        return cross_entropy(dense(p, y, 32000), labels)

    return _trained(loss, *[tokens(batch, length)] * 3)


def griffin(layers: int, width: int, batch: int, length: int) -> Program:
    """Gated linear recurrences over a text, and local attention in every third layer."""

    def recurrence(p, x):
        y, gate = dense(p, x, width), jax.nn.gelu(dense(p, x, width))
        earlier = [jnp.pad(y, ((0, 0), (i, 0), (0, 0)))[:, :length] * p(width) for i in range(4)]
        y = sum(earlier[1:], earlier[0])
        forget, take = (jax.nn.sigmoid(dense(p, y, width).astype(F32)) for _ in range(2))
        keep = jnp.exp(-8 * jax.nn.softplus(p(width).astype(F32)) * forget)
        new = jnp.sqrt(1 - jnp.square(keep)) * take * y

        def join(a, b):
            return a[0] * b[0], a[1] * b[0] + b[1]

        y = lax.associative_scan(join, (keep, new), axis=1)[1].astype(BF16)
        return dense(p, y * gate, width)

    def model(p, ids):
        table = p(32000, width)
        x = table[ids]
        for i in range(layers):
            h = rms_norm(p, x)
            if i % 3 == 2:
                q, k, v = (dense(p, h, width, False) for _ in range(3))
                x = x + dense(p, attention(q, k, v, width // 128, causal=True), width)
            else:
                x = x + recurrence(p, h)
            gate, up = jnp.split(dense(p, rms_norm(p, x), 6 * width), 2, -1)
            x = x + dense(p, jax.nn.gelu(gate) * up, width)
        return rms_norm(p, x)[:, -1] @ table.T

    return inference(model, tokens(batch, length))


_LLAMA = Decoder(36, 2048, 32, 8, 5632)
_SMALL = Decoder(12, 1024, 16, 8, 2816)
_GEMMA = Decoder(26, 2304, 8, 4, 9216, 256000, norm_after=True)
_QWEN = Decoder(36, 2560, 32, 8, 9728, 151936, norm_heads=True)
_MIXTURE = Decoder(24, 2048, 16, 8, 2816, experts=8)


def _but(decoder: Decoder, **changes) -> Decoder:
    return dataclasses.replace(decoder, **changes)


# Model -> the target, as names of bundled programs say it, and what gives function and arguments.
MODELS: dict[str, tuple[str, Callable[[], Program]]] = {
    # Decoders of one network, word by word.
    "llama_2b_decode_36l_b8_kv1024": ("tpu_v5e", lambda: _LLAMA.decode(8, 1024)),
    "gemma_2b_decode_26l_b8_kv2048": ("tpu_v6e", lambda: _GEMMA.decode(8, 2048)),
    "llama_draft_12l_b8_4words": ("tpu7x", lambda: _SMALL.decode(8, 2048, 4)),
    "qwen_4b_decode_36l_b16_kv2048_tp4": (
        "tpu_v5p_2x2x1",
        lambda: _but(_QWEN, devices=Devices(1, 4)).decode(16, 2048),
    ),
    # Over a whole text.
    "llama_2b_prefill_36l_s1024": ("tpu_v5e", lambda: _LLAMA.prefill(1, 1024)),
    "qwen_8b_prefill_48l_s2048_tp8_dp2": (
        "tpu_v5e_4x4",
        lambda: _but(_QWEN, layers=48, width=4096, devices=Devices(2, 8)).prefill(4, 2048),
    ),
    # In training.
    "llama_train_12l_b4_s512": ("tpu_v5e", lambda: _SMALL.train(4, 512)),
    "gpt2_medium_train_24l_b4_s512": ("tpu_v6e", lambda: gpt2(24, 1024, 4, 512)),
    "llama_train_24l_b16_s512_fsdp16": (
        "tpu_v5e_4x4",
        lambda: _but(_SMALL, layers=24, width=2048, devices=Devices(16, 1)).train(16, 512),
    ),
    "llama_train_48l_in_8_passes": (
        "tpu_v5p",
        lambda: _but(_SMALL, layers=48, in_a_pass=6).train(8, 1024),
    ),
    "llama_train_160l_b2_s512": (
        "tpu_v6e",
        lambda: _but(_SMALL, layers=160, width=512, heads=8, kv_heads=4, widened=1408).train(
            2, 512
        ),
    ),
    # Mixtures of experts.
    "moe_decode_24l_b32_kv1024_ep4": (
        "tpu_v6e_2x2",
        lambda: _but(_MIXTURE, devices=Devices(1, 4)).decode(32, 1024),
    ),
    "moe_prefill_24l_s1024": ("tpu_v5p", lambda: _MIXTURE.prefill(1, 1024)),
    "moe_train_8l_b4_s512": (
        "tpu7x",
        lambda: _but(_MIXTURE, layers=8, width=1024, widened=2048).train(4, 512),
    ),
    # Encoders with decoders.
    "translator_train_12l_b8_s256": ("tpu_v5e", lambda: translator(12, 768, 8, 256)),
    "whisper_medium_24l_b1": ("tpu_v6e", lambda: whisper(24, 1024, 1, 64)),
    # Vision.
    "vit_large_train_24l_b16": ("tpu_v6e", lambda: vit(24, 1024, 16)),
    "swin_base_b8": ("tpu_v5e", lambda: swin((2, 2, 18, 2), 128, 8)),
    "resnet152_train_b16": ("tpu_v5p", lambda: resnet_training((3, 8, 36, 3), 16)),
    # Diffusion.
    "unet_sd_b2_64": ("tpu_v6e", lambda: inference(unet, *noisy_latents(2, 64))),
    "unet_train_b8_32": ("tpu_v5p", lambda: unet_training((192, 384, 576, 768), 8, 32)),
    "dit_xl_28l_2steps_b4": ("tpu7x", lambda: diffusion_transformer(28, 1152, 4, 32, 2)),
    # Recurrence.
    "lstm_train_4l_b32_t32": ("tpu_v5e", lambda: lstm_translator(4, 1024, 32, 32)),
    "griffin_2b_prefill_26l_s1024": ("tpu_v5p", lambda: griffin(26, 2048, 1, 1024)),
}
