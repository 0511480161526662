"""The Conformer block of both recognisers: attention and convolution that continue from explicit memory.

Keys and values are one head that all queries share, which makes the memory of a session a quarter of the usual size.
There are no positions: the convolutions tell the frames apart.
"""

from typing import NamedTuple

import tensorflow as tf

from training.filterbank import MEL_BINS
from training.layers import Mode, dense, dense_parts, depthwise, swish
from training.weights import Arrays, Initialiser, Weights
from training.words import TOKENS


class Size(NamedTuple):
    """The dimensions of a Conformer.

    Attributes:
        channels: Width of the residual stream.
        heads: Attention queries per frame.
        head_channels: Width of a query, of the key and of the value.
        expansion: Inner width of the feed-forward layers over `channels`.
        taps: Frames under the depthwise convolution.
        blocks: How many.
    """

    channels: int
    heads: int
    head_channels: int
    expansion: int
    taps: int
    blocks: int


class Memory(NamedTuple):
    """What a block remembers of the frames before; zeros at the start.

    Attributes:
        conv: [N, taps - 1, channels], inputs of the depthwise convolution.
        key: [N, context, head_channels].
        value: [N, context, head_channels]. A key of zeros that was never filled takes part in the attention with
            a value of zeros, in training as in use.
    """

    conv: tf.Tensor
    key: tf.Tensor
    value: tf.Tensor


def initialise_block(initialiser: Initialiser, name: str, size: Size) -> None:
    """Draws the weights of one block."""
    channels, inner = size.channels, size.channels * size.expansion
    queries = size.heads * size.head_channels
    for part in ("feed1", "feed2"):
        initialiser.dense(f"{name}/{part}/up", channels, inner)
        initialiser.norm(f"{name}/{part}/up/before", channels)
        initialiser.dense(f"{name}/{part}/down", inner, channels, 0.7)
    initialiser.dense(f"{name}/attend", channels, queries + 2 * size.head_channels)
    initialiser.norm(f"{name}/attend/before", channels)
    # Queries start small: their products with the keys are not scaled by anything else.
    initialiser.arrays[f"{name}/attend/kernel"][:, :queries] *= size.head_channels**-0.5
    initialiser.dense(f"{name}/attended", queries, channels, 0.7)
    initialiser.dense(f"{name}/gated", channels, 2 * channels)
    initialiser.norm(f"{name}/gated/before", channels)
    initialiser.depthwise(f"{name}/depthwise", size.taps, channels)
    initialiser.norm(f"{name}/depthwise/after", channels)
    initialiser.dense(f"{name}/mixed", channels, channels, 0.7)


def initialise_recogniser(seed: int, size: Size, front_taps: int) -> Arrays:
    """Draws all weights of a recogniser: two strided convolutions, the blocks, the tokens."""
    initialiser = Initialiser(seed)
    initialiser.conv("front1", front_taps, MEL_BINS, size.channels)
    initialiser.norm("front1/after", size.channels)
    initialiser.conv("front2", front_taps, size.channels, size.channels)
    initialiser.norm("front2/after", size.channels)
    for block in range(size.blocks):
        initialise_block(initialiser, f"block{block}", size)
    initialiser.dense("out", size.channels, len(TOKENS))
    initialiser.norm("out/before", size.channels)
    return initialiser.arrays


def _feed_forward(weights: Weights, name: str, x: tf.Tensor, mode: Mode) -> tf.Tensor:
    inner = swish(dense(weights, f"{name}/up", x, mode))
    return dense(weights, f"{name}/down", inner, mode)


def _attend(
    query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, mask: tf.Tensor | None, size: Size, mode: Mode
) -> tf.Tensor:
    """Attention of all heads over the one key head: [N, T, heads * head_channels].

    An exported graph must not compute shapes (delegates of fixed sizes refuse it, and old runtimes leave their fast
    path): with a fixed T the heads are rows of one product, with an open T each head is a product of its own.
    """
    known_frames = query.shape[1]
    if known_frames is None and mask is None and not mode.training:
        heads = tf.split(query, size.heads, axis=2)
        return tf.concat([tf.matmul(tf.nn.softmax(tf.matmul(h, key, transpose_b=True)), value) for h in heads], 2)
    frames = known_frames or tf.shape(query)[1]
    batch = -1 if known_frames else tf.shape(query)[0]
    rows = tf.reshape(query, [batch, frames * size.heads, size.head_channels])
    scores = tf.matmul(rows, key, transpose_b=True)
    if mask is not None:
        scores += mask
    attended = tf.matmul(tf.nn.softmax(scores), value)
    return tf.reshape(attended, [batch, frames, size.heads * size.head_channels])


def _attention(
    weights: Weights,
    name: str,
    x: tf.Tensor,
    memory: tuple[tf.Tensor, tf.Tensor] | None,
    mask: tf.Tensor | None,
    size: Size,
    mode: Mode,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    widths = (size.heads * size.head_channels, size.head_channels, size.head_channels)
    query, key, value = dense_parts(weights, f"{name}/attend", x, widths, mode)
    if memory is not None:
        key = tf.concat([memory[0], key], axis=1)
        value = tf.concat([memory[1], value], axis=1)
    attended = _attend(query, key, value, mask, size, mode)
    return dense(weights, f"{name}/attended", attended, mode), key, value


def _convolution(
    weights: Weights, name: str, x: tf.Tensor, before: tf.Tensor | None, size: Size, mode: Mode
) -> tuple[tf.Tensor, tf.Tensor]:
    """Convolution behind `before`, or over the whole utterance between zeros; gives its inputs as well."""
    widths = (x.shape[2], x.shape[2])
    linear, gate = dense_parts(weights, f"{name}/gated", x, widths, mode)
    inner, side = linear * tf.sigmoid(gate), size.taps // 2
    inner = tf.pad(inner, [[0, 0], [side, side], [0, 0]]) if before is None else tf.concat([before, inner], axis=1)
    mixed = swish(depthwise(weights, f"{name}/depthwise", inner, mode))
    return dense(weights, f"{name}/mixed", mixed, mode), inner


def causal_block(
    weights: Weights,
    name: str,
    x: tf.Tensor,
    memory: Memory,
    mask: tf.Tensor | None,
    size: Size,
    mode: Mode,
) -> tuple[tf.Tensor, Memory]:
    """One block over the frames that follow its memory.

    Args:
        weights: The network's weights.
        name: The block.
        x: [N, T, channels].
        memory: The block's memory before these frames.
        mask: [1, T * heads, context + T] added to the scores, or None to attend to everything there is.
        size: The dimensions.
        mode: Training or inference.

    Returns:
        [N, T, channels] and the memory after these frames.
    """
    x += 0.5 * _feed_forward(weights, f"{name}/feed1", x, mode)
    pair = (memory.key, memory.value)
    attended, key, value = _attention(weights, name, x, pair, mask, size, mode)
    x += attended
    convolved, inner = _convolution(weights, name, x, memory.conv, size, mode)
    x += convolved
    x += 0.5 * _feed_forward(weights, f"{name}/feed2", x, mode)
    context, taps = memory.key.shape[1], size.taps
    return x, Memory(inner[:, -(taps - 1) :], key[:, -context:], value[:, -context:])


def full_block(weights: Weights, name: str, x: tf.Tensor, size: Size, mode: Mode) -> tf.Tensor:
    """One block over a whole utterance [N, T, channels], past and future alike."""
    x += 0.5 * _feed_forward(weights, f"{name}/feed1", x, mode)
    x += _attention(weights, name, x, None, None, size, mode)[0]
    x += _convolution(weights, name, x, None, size, mode)[0]
    return x + 0.5 * _feed_forward(weights, f"{name}/feed2", x, mode)
