"""Models that look at pictures, and one that paints them."""

import jax
import jax.numpy as jnp
from jax import lax

from .layers import batch_norm, block, conv, cross_entropy, dense, layer_norm, max_pool, mlp
from .parameters import BF16, F32, I32, Program, Shape, inference, training


def images(batch: int, size: int = 224) -> Shape:
    return Shape((batch, size, size, 3), BF16)


def alexnet(p, x):
    """As Krizhevsky et al. (2012) have it, without dropout; groups are those of its two GPUs."""

    def normalized(x):
        """Local response normalization over five channels."""
        squares = jnp.square(x.astype(F32))
        near = lax.reduce_window(squares, 0.0, lax.add, (1, 1, 1, 5), (1, 1, 1, 1), "SAME")
        return (x.astype(F32) * (2.0 + 1e-4 * near) ** -0.75).astype(x.dtype)

    x = max_pool(normalized(jax.nn.relu(conv(p, x, 96, 11, 4))))
    x = max_pool(normalized(jax.nn.relu(conv(p, x, 256, 5, groups=2))))
    x = jax.nn.relu(conv(p, x, 384))
    x = jax.nn.relu(conv(p, x, 384, groups=2))
    x = max_pool(jax.nn.relu(conv(p, x, 256, groups=2)))
    return mlp(p, x.reshape(x.shape[0], -1), 4096, 4096, 1000)


def alexnet_training(batch: int) -> Program:
    def loss(p, x, labels):
        return cross_entropy(alexnet(p, x), labels)

    return training(loss, images(batch), Shape((batch,), I32))


def resnet(p, x, depths, norm=None):
    """ResNet with bottlenecks. norm None: folded into the convolutions, as for inference."""
    bias = norm is None
    norm = norm or (lambda p, y: y)
    x = max_pool(jax.nn.relu(norm(p, conv(p, x, 64, 7, 2, bias=bias))))
    for stage, depth in enumerate(depths):
        channels = 64 << stage
        for i in range(depth):
            stride = 2 if stage and not i else 1
            y = jax.nn.relu(norm(p, conv(p, x, channels, 1, bias=bias)))
            y = jax.nn.relu(norm(p, conv(p, y, channels, 3, stride, bias=bias)))
            y = norm(p, conv(p, y, 4 * channels, 1, bias=bias))
            if i == 0:
                x = norm(p, conv(p, x, 4 * channels, 1, stride, bias=bias))
            x = jax.nn.relu(x + y)
    return dense(p, x.mean((1, 2)), 1000)


def resnet50(batch: int) -> Program:
    return inference(lambda p, x: resnet(p, x, (3, 4, 6, 3)), images(batch))


def resnet101(batch: int) -> Program:
    return inference(lambda p, x: resnet(p, x, (3, 4, 23, 3)), images(batch))


def resnet50_training(batch: int) -> Program:
    def loss(p, x, labels):
        return cross_entropy(resnet(p, x, (3, 4, 6, 3), batch_norm), labels)

    return training(loss, images(batch), Shape((batch,), I32))


def mobilenet_v2(batch: int) -> Program:
    # Each stage: widening, channels, blocks, stride of the first.
    stages = (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    )

    def model(p, x):
        x = jax.nn.relu6(conv(p, x, 32, 3, 2))
        for widening, channels, blocks, stride in stages:
            for i in range(blocks):
                wide = x.shape[-1] * widening
                y = jax.nn.relu6(conv(p, x, wide, 1)) if widening > 1 else x
                y = jax.nn.relu6(conv(p, y, wide, 3, 1 if i else stride, groups=wide))
                y = conv(p, y, channels, 1)
                x = x + y if y.shape == x.shape else y
        return dense(p, jax.nn.relu6(conv(p, x, 1280, 1)).mean((1, 2)), 1000)

    return inference(model, images(batch))


def efficientnet_b0(batch: int) -> Program:
    # Each stage: widening, channels, blocks, stride of the first, kernel.
    stages = (
        (1, 16, 1, 1, 3),
        (6, 24, 2, 2, 3),
        (6, 40, 2, 2, 5),
        (6, 80, 3, 2, 3),
        (6, 112, 3, 1, 5),
        (6, 192, 4, 2, 5),
        (6, 320, 1, 1, 3),
    )

    def model(p, x):
        x = jax.nn.silu(conv(p, x, 32, 3, 2))
        for widening, channels, blocks, stride, size in stages:
            for i in range(blocks):
                narrow, wide = x.shape[-1], x.shape[-1] * widening
                y = jax.nn.silu(conv(p, x, wide, 1)) if widening > 1 else x
                y = jax.nn.silu(conv(p, y, wide, size, 1 if i else stride, groups=wide))
                gate = jax.nn.silu(dense(p, y.mean((1, 2)), max(1, narrow // 4)))
                gate = jax.nn.sigmoid(dense(p, gate, wide))
                y = conv(p, y * gate[:, None, None], channels, 1)
                x = x + y if y.shape == x.shape else y
        return dense(p, jax.nn.silu(conv(p, x, 1280, 1)).mean((1, 2)), 1000)

    return inference(model, images(batch))


def densenet121(batch: int) -> Program:
    def model(p, x):
        x = max_pool(jax.nn.relu(conv(p, x, 64, 7, 2)))
        for stage, layers in enumerate((6, 12, 24, 16)):
            for _ in range(layers):
                y = jax.nn.relu(x * p(x.shape[-1]) + p(x.shape[-1]))
                y = jax.nn.relu(conv(p, y, 128, 1))
                x = jnp.concatenate([x, conv(p, y, 32, 3, bias=False)], -1)
            if stage < 3:
                x = conv(p, jax.nn.relu(x), x.shape[-1] // 2, 1)
                zero = jnp.array(0, x.dtype)
                x = lax.reduce_window(x, zero, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") * 0.25
        return dense(p, x.mean((1, 2)), 1000)

    return inference(model, images(batch))


def convnext_tiny(batch: int) -> Program:
    def model(p, x):
        x = layer_norm(p, conv(p, x, 96, 4, 4))
        for stage, blocks in enumerate((3, 3, 9, 3)):
            if stage:
                x = conv(p, layer_norm(p, x), 96 << stage, 2, 2)
            channels = x.shape[-1]
            for _ in range(blocks):
                y = layer_norm(p, conv(p, x, channels, 7, groups=channels))
                x = x + dense(p, jax.nn.gelu(dense(p, y, 4 * channels)), channels) * p(channels)
        return dense(p, layer_norm(p, x.mean((1, 2))), 1000)

    return inference(model, images(batch))


def mlp_mixer(batch: int) -> Program:
    def model(p, x):
        x = conv(p, x, 512, 16, 16).reshape(x.shape[0], 196, 512)
        for _ in range(8):
            h = jnp.swapaxes(layer_norm(p, x), 1, 2)
            x = x + jnp.swapaxes(dense(p, jax.nn.gelu(dense(p, h, 256)), 196), 1, 2)
            x = x + dense(p, jax.nn.gelu(dense(p, layer_norm(p, x), 2048)), 512)
        return dense(p, layer_norm(p, x).mean(1), 1000)

    return inference(model, images(batch))


def vision_tower(p, x, patch: int, width: int, layers: int, heads: int):
    """ViT without its head: [batch, 1 + patches, width].

    Position 0 stands for the whole picture.
    """
    x = conv(p, x, width, patch, patch).reshape(x.shape[0], -1, width)
    whole = jnp.broadcast_to(p(1, 1, width), (x.shape[0], 1, width))
    x = jnp.concatenate([whole, x], 1)
    x = x + p(x.shape[1], width)
    for _ in range(layers):
        x = block(p, x, heads)
    return layer_norm(p, x)


def vit_base(batch: int) -> Program:
    return inference(
        lambda p, x: dense(p, vision_tower(p, x, 16, 768, 12, 12)[:, 0], 1000), images(batch)
    )


def dcgan_generator(batch: int) -> Program:
    def model(p, z):
        x = jax.nn.relu(dense(p, z, 4 * 4 * 1024)).reshape(-1, 4, 4, 1024)
        for channels in (512, 256, 128, 64):
            x = lax.conv_transpose(x, p(4, 4, x.shape[-1], channels), (2, 2), "SAME")
            x = jax.nn.relu(x * p(channels) + p(channels))
        return jnp.tanh(conv(p, x, 3))

    return inference(model, Shape((batch, 128), BF16))
