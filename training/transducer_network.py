"""The transducer: the streaming recogniser's encoder, a recurrent network over the tokens so far, and a joiner."""

import numpy as np
import tensorflow as tf

from training import stream_network
from training.layers import INFERENCE, Mode, dense, min_gru
from training.weights import Arrays, Initialiser, Weights
from training.words import TOKENS

_EMBEDDING = 48
_MEMORY = 64
_JOINT = 96
STATES = ("memory",)


def initialise(stream: Arrays, seed: int) -> Arrays:
    """The encoder of a streaming recogniser, and fresh weights for the rest."""
    initialiser = Initialiser(seed)
    initialiser.dense("encoded", stream_network.SIZE.channels, _JOINT)
    initialiser.norm("encoded/before", stream_network.SIZE.channels)
    initialiser.dense("embedding", len(TOKENS), _EMBEDDING, len(TOKENS) ** 0.5)
    initialiser.min_gru("memory", _EMBEDDING, _MEMORY)
    initialiser.dense("predicted", _MEMORY, _JOINT)
    initialiser.dense("joined", _JOINT, len(TOKENS))
    # A table of vectors, looked up by token, has no bias.
    del initialiser.arrays["embedding/bias"]
    encoder = {name: array for name, array in stream.items() if not name.startswith("out/")}
    return encoder | initialiser.arrays


def predict(
    weights: Weights, tokens: tf.Tensor, memory: tf.Tensor, mode: Mode = INFERENCE
) -> tuple[tf.Tensor, tf.Tensor]:
    """What follows tokens, int32 [N, U]: vectors [N, U, 96] and the memory [N, 64] after the last one."""
    embedded = tf.gather(weights["embedding/kernel"], tokens)
    remembered, after = min_gru(weights, "memory", embedded, memory, mode)
    return dense(weights, "predicted", remembered, mode), after


def join(weights: Weights, encoding: tf.Tensor, prediction: tf.Tensor, mode: Mode = INFERENCE) -> tf.Tensor:
    """Log probabilities [..., tokens] of the next token, blank first, from vectors [..., 96] of sound and of text."""
    return tf.nn.log_softmax(dense(weights, "joined", tf.tanh(encoding + prediction), mode))


def whole(weights: Weights, features: tf.Tensor, labels: tf.Tensor, mode: Mode) -> tf.Tensor:
    """Log probabilities [N, T // 4, U + 1, tokens] of whole utterances at each place in their labels.

    Args:
        weights: By name.
        features: float32 [N, T, 40], T a multiple of 8.
        labels: int32 [N, U], U fixed when traced; what stands behind the last label does not matter.
        mode: Training.
    """
    encoding = dense(weights, "encoded", stream_network.encode_whole(weights, features, mode), mode)
    begun = tf.pad(labels, [[0, 0], [1, 0]])
    memory = tf.zeros([tf.shape(labels)[0], _MEMORY])
    prediction, _ = predict(weights, begun, memory, mode)
    return join(weights, encoding[:, :, None], prediction[:, None], mode)


def encoder_step(weights: Weights, features: tf.Tensor, **states_in: tf.Tensor) -> dict[str, tf.Tensor]:
    """The exported encoder: 8 feature frames and states ``*_in`` to ``encoding`` [N, 2, 96] and ``*_out``."""
    states = {name.removesuffix("_in"): state for name, state in states_in.items()}
    x, after = stream_network.encode(weights, features, states)
    return {"encoding": dense(weights, "encoded", x, INFERENCE)} | {f"{k}_out": v for k, v in after.items()}


def predictor_step(weights: Weights, token: tf.Tensor, memory_in: tf.Tensor) -> dict[str, tf.Tensor]:
    """The exported prediction network: ``token`` int32 [N, 1] and its memory to ``prediction`` [N, 96]."""
    prediction, after = predict(weights, token, memory_in)
    return {"prediction": prediction[:, 0], "memory_out": after}


def joiner_step(weights: Weights, encoding: tf.Tensor, prediction: tf.Tensor) -> dict[str, tf.Tensor]:
    """The exported joiner: vectors [N, 96] each to ``log_probs`` [N, tokens]."""
    return {"log_probs": join(weights, encoding, prediction)}


def predictor_inputs() -> dict[str, tf.TensorSpec]:
    """Names and shapes of the inputs of `predictor_step`."""
    return {
        "token": tf.TensorSpec([None, 1], tf.int32, "token"),
        "memory_in": tf.TensorSpec([None, _MEMORY], tf.float32, "memory_in"),
    }


def joiner_inputs() -> dict[str, tf.TensorSpec]:
    """Names and shapes of the inputs of `joiner_step`."""
    return {name: tf.TensorSpec([None, _JOINT], tf.float32, name) for name in ("encoding", "prediction")}


def zero_memory(batch: int) -> np.ndarray:
    """The prediction network's memory before the first token."""
    return np.zeros((batch, _MEMORY), np.float32)
