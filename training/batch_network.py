"""The batch recogniser: a Conformer over the whole utterance, past and future, with CTC.

It begins as the streaming recogniser (`from_stream`): the same weights, with taps of zero added for the future.
"""

import numpy as np
import tensorflow as tf

from training import stream_network
from training.conformer import Size, full_block, initialise_recogniser
from training.filterbank import MEL_BINS
from training.layers import INFERENCE, Mode, conv, dense, swish
from training.weights import Arrays, Weights

SIZE = Size(channels=96, heads=4, head_channels=24, expansion=1, taps=17, blocks=5)
_FRONT_TAPS = 7
_BEFORE, _AFTER = 3, 2


def initialise(seed: int) -> Arrays:
    """Fresh weights."""
    return initialise_recogniser(seed, SIZE, _FRONT_TAPS)


def from_stream(stream: Arrays, seed: int) -> Arrays:
    """Weights that compute what the streaming recogniser does, except for the bounds of its attention.

    Taps over the future are zero; the blocks that it does not have pass their input on unchanged.
    """
    arrays = initialise(seed)
    for name, array in stream.items():
        wider = np.zeros_like(arrays[name])
        wider[tuple(slice(0, length) for length in array.shape)] = array
        arrays[name] = wider
    for block in range(stream_network.SIZE.blocks, SIZE.blocks):
        for part in ("feed1/down", "feed2/down", "attended", "mixed"):
            arrays[f"block{block}/{part}/kernel"] *= 0.0
    return arrays


def _padded(x: tf.Tensor) -> tf.Tensor:
    return tf.pad(x, [[0, 0], [_BEFORE, _AFTER], [0, 0]])


def network(weights: Weights, features: tf.Tensor, mode: Mode = INFERENCE) -> tf.Tensor:
    """Logits [N, T // 4, tokens] of whole utterances, float32 [N, T, 40]."""
    x = swish(conv(weights, "front1", _padded(features), 2, mode))
    x = swish(conv(weights, "front2", _padded(x), 2, mode))
    for block in range(SIZE.blocks):
        x = full_block(weights, f"block{block}", x, SIZE, mode)
    return dense(weights, "out", x, mode)


def utterance(weights: Weights, features: tf.Tensor) -> dict[str, tf.Tensor]:
    """The exported call: ``features`` [N, T, 40] to ``log_probs`` [N, T // 4, tokens]."""
    return {"log_probs": tf.nn.log_softmax(network(weights, features))}


def utterance_inputs() -> dict[str, tf.TensorSpec]:
    """Names and shapes of the inputs of `utterance`."""
    return {"features": tf.TensorSpec([None, None, MEL_BINS], tf.float32, "features")}
