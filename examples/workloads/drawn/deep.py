"""Families of whole models, drawn at random: 3 to 80 layers, most of 500 to 20,000 accesses.

Decoders in training, over a text (prefill) and word by word, with one network or with experts,
unrolled or as passes of a loop; encoders, with and without a decoder; vision, sound, diffusion and
recurrence. The parts are those of the suite `large` (whole.py); all sizes are drawn.
"""

import dataclasses

from .. import whole
from ..large import noisy_latents, unet
from ..layers import block, cross_entropy, dense, layer_norm
from ..parameters import BF16, I32, Program, Shape, inference, training
from ..vision import images, resnet
from .dice import Dice
from .parts import tokens

_WORDS = (8192, 16384, 32000, 50257)


def _decoder(dice: Dice, *layers: int) -> whole.Decoder:
    size = dice.pick(64, 128)
    heads = dice.pick(8, 12, 16)
    width = heads * size
    return whole.Decoder(
        layers=dice.pick(*layers),
        width=width,
        heads=heads,
        kv_heads=heads // dice.pick(1, 2, 4),
        widened=width * dice.pick(2, 3, 4),
        words=dice.pick(*_WORDS),
        norm_heads=dice.chance(0.4),
    )


def _deep(dice: Dice, *layers: int) -> whole.Decoder:
    """So many layers have to be narrow to lie in the main memory of each chip."""
    width = 8 * dice.pick(64, 96, 128)
    return whole.Decoder(
        layers=dice.pick(*layers),
        width=width,
        heads=8,
        kv_heads=8 // dice.pick(1, 2, 4),
        widened=width * dice.pick(2, 3, 4),
        words=dice.pick(8192, 16384),
        norm_heads=dice.chance(0.4),
    )


def _many_words(dice: Dice, decoder: whole.Decoder, *steps: int) -> Program:
    """Several words in one program, as where a small model drafts for a large one."""
    batch, cached = dice.pick(1, 4, 8), dice.pick(256, 512)
    return decoder.decode(batch, cached, dice.pick(*steps))


def _wide(dice: Dice, decoder: whole.Decoder) -> whole.Decoder:
    """Inference is of larger networks than training on one chip."""
    times = dice.pick(1, 1, 2)
    return dataclasses.replace(
        decoder,
        heads=decoder.heads * times,
        width=decoder.width * times,
        widened=decoder.widened * times,
    )


def _trained(dice: Dice, decoder: whole.Decoder) -> Program:
    batch, length = dice.pick((2, 512), (4, 256), (4, 512), (8, 256), (16, 128))
    return decoder.train(batch, length)


def _decoded(dice: Dice, decoder: whole.Decoder) -> Program:
    batch, cached = dice.pick(1, 4, 8, 16, 32), dice.pick(256, 512, 1024, 2048)
    return decoder.decode(batch, cached)


def _prefilled(dice: Dice, decoder: whole.Decoder) -> Program:
    batch, length = dice.pick((1, 256), (1, 512), (1, 1024), (2, 512), (4, 256))
    return decoder.prefill(batch, length)


def decoder_training(dice: Dice) -> Program:
    """A step of AdamW on a decoder of one network."""
    return _trained(dice, _decoder(dice, 3, 4, 5, 6))


def looped_training(dice: Dice) -> Program:
    """The same with the layers as passes of a loop, several in each."""
    in_a_pass = dice.pick(2, 3, 4)
    decoder = _decoder(dice, 4 * in_a_pass, 8 * in_a_pass)
    return _trained(dice, dataclasses.replace(decoder, in_a_pass=in_a_pass))


def decoding(dice: Dice) -> Program:
    """The next word of a decoder of one network, with a cache for each layer."""
    return _decoded(dice, _wide(dice, _decoder(dice, 12, 16, 20, 24, 32, 40)))


def prefill(dice: Dice) -> Program:
    """The first word after a text, of a decoder of one network."""
    return _prefilled(dice, _wide(dice, _decoder(dice, 8, 12, 16, 24)))


def deep_decoding(dice: Dice) -> Program:
    """The next word of a decoder of one network with 48 to 80 layers."""
    return _many_words(dice, _deep(dice, 48, 64, 80), 1)


def drafting(dice: Dice) -> Program:
    """The next words of a decoder of one network."""
    return _many_words(dice, _deep(dice, 12, 16, 24), 3, 4, 6)


def deep_encoder(dice: Dice) -> Program:
    """Attention of all positions to each other, of words or of patches of a picture."""
    layers, width = dice.pick(4, 6, 8, 12), dice.pick(512, 768, 1024)
    batch, length = dice.pick((1, 512), (4, 256), (8, 128), (16, 128))
    widening, words = dice.pick(2, 4), dice.pick(0, *_WORDS)
    trained = dice.chance(0.3)

    def model(p, x):
        x = (p(words, width)[x] if words else dense(p, x, width)) + p(length, width)
        for _ in range(layers):
            x = block(p, x, width // 64, widening=widening)
        return dense(p, layer_norm(p, x).mean(1), 1000)

    given = tokens(batch, length) if words else Shape((batch, length, 768), BF16)
    if not trained:
        return inference(model, given)
    labels = Shape((batch,), I32)
    return training(lambda p, x, to: cross_entropy(model(p, x), to), given, labels)


def residual_network(dice: Dice) -> Program:
    """ResNet of drawn depths, folded for inference."""
    depths = tuple(dice.pick(2, 3, 4) * times for times in (1, 2, dice.pick(2, 4, 6), 1))
    batch, size = dice.pick(1, 4, 8, 16), dice.pick(160, 224)
    return inference(lambda p, x: resnet(p, x, depths), images(batch, size))


def alternating_decoder(dice: Dice) -> Program:
    """A decoder with norms behind its parts, of which every second layer sees a window only."""
    kind = dice.pick("train", "prefill", "decode", "decode")
    decoder = _decoder(dice, *((3, 4, 6) if kind == "train" else (12, 16, 20, 26)))
    decoder = dataclasses.replace(decoder, norm_after=True, window=dice.pick(64, 128, 256))
    if kind == "train":
        return _trained(dice, decoder)
    return (_prefilled if kind == "prefill" else _decoded)(dice, _wide(dice, decoder))


def deep_alternation(dice: Dice) -> Program:
    """The next words of an alternating decoder of 24 to 56 layers."""
    decoder = _deep(dice, 24, 40, 56)
    decoder = dataclasses.replace(decoder, norm_after=True, window=dice.pick(64, 128, 256))
    return _many_words(dice, decoder, 1, 2, 3)


def translation(dice: Dice) -> Program:
    """A training step of an encoder and a decoder over words."""
    width, batch, length = dice.pick(512, 768), dice.pick(4, 8, 16), dice.pick(64, 128, 256)
    return whole.translator(dice.pick(2, 3, 4), width, batch, length)


def linear_recurrence(dice: Dice) -> Program:
    """Gated linear recurrences over a text, and local attention in every third layer."""
    width, length = dice.pick(512, 1024, 2048), dice.pick(256, 512, 1024)
    return whole.griffin(dice.pick(6, 9, 12), width, dice.pick(1, 2), length)


def expert_decoder(dice: Dice) -> Program:
    """A decoder whose layers have several networks, of which each token goes to two."""
    kind = dice.pick("train", "prefill", "decode", "decode")
    decoder = _decoder(dice, *((3, 4) if kind == "train" else (8, 12, 16, 24)))
    experts = dice.pick(4, 8)
    decoder = dataclasses.replace(decoder, experts=experts, widened=2 * decoder.width)
    if kind == "train":
        return _trained(dice, decoder)
    return (_prefilled if kind == "prefill" else _decoded)(dice, decoder)


def deep_experts(dice: Dice) -> Program:
    """The next words of a decoder with experts of 16 to 40 layers."""
    decoder = _deep(dice, 16, 24, 40)
    decoder = dataclasses.replace(decoder, experts=4, widened=decoder.width)
    return _many_words(dice, decoder, 1, 2, 3)


def windowed_vision(dice: Dice) -> Program:
    """Attention within windows, which every second block has moved by half."""
    depths = (2, 2, dice.pick(6, 10, 14, 18), 2)
    return whole.swin(depths, dice.pick(64, 96, 128), dice.pick(1, 2, 4, 8))


def denoiser(dice: Dice) -> Program:
    """Transformers that take noise away in several steps, or one step of a U-Net."""
    if dice.chance(0.3):
        width = dice.pick(128, 192, 256)
        widths = width, 2 * width, 4 * width, 4 * width
        latents = noisy_latents(dice.pick(1, 2), 32)
        return inference(lambda p, x, t, text: unet(p, x, t, text, widths, 1), *latents)
    width, size = 72 * dice.pick(6, 8, 12, 16), dice.pick(16, 32)
    layers, steps = dice.pick((12, 2), (12, 3), (20, 1), (28, 1))
    return whole.diffusion_transformer(layers, width, dice.pick(1, 2, 4), size, steps)


def long_denoising(dice: Dice) -> Program:
    """Transformers that take noise away in many steps."""
    layers, steps = dice.pick((12, 6), (12, 10), (20, 6), (28, 4), (28, 8))
    width, size = 72 * dice.pick(6, 8, 12), dice.pick(16, 32)
    return whole.diffusion_transformer(layers, width, dice.pick(1, 2, 4), size, steps)


def speech(dice: Dice) -> Program:
    """Half a minute of sound, and the words so far."""
    return whole.whisper(dice.pick(6, 8, 12), dice.pick(512, 768), 1, dice.pick(16, 64))


# Name -> function that draws one program of the family.
DEEP_FAMILIES = {
    family.__name__: family
    for family in (
        decoder_training,
        looped_training,
        decoding,
        prefill,
        deep_decoding,
        drafting,
        deep_encoder,
        residual_network,
        alternating_decoder,
        deep_alternation,
        translation,
        linear_recurrence,
        expert_decoder,
        deep_experts,
        windowed_vision,
        denoiser,
        long_denoising,
        speech,
    )
}
