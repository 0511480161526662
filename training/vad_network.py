"""The voice detector: filterbank, two causal convolutions and two gated recurrent layers; one probability per 10 ms."""

import tensorflow as tf

from training.filterbank import CONTEXT_SAMPLES, HOP_SAMPLES, MEL_BINS, features
from training.layers import INFERENCE, Mode, conv, dense, min_gru
from training.weights import Arrays, Initialiser, Weights

BLOCK_SAMPLES = 1280
FRAMES = BLOCK_SAMPLES // HOP_SAMPLES
CHANNELS = 48
_TAPS = 3
_RECURRENT = ("gru1", "gru2")

States = dict[str, tf.Tensor]


def initialise(seed: int) -> Arrays:
    """Fresh weights."""
    initialiser = Initialiser(seed)
    initialiser.conv("conv1", _TAPS, MEL_BINS, CHANNELS)
    initialiser.conv("conv2", _TAPS, CHANNELS, CHANNELS)
    for name in _RECURRENT:
        initialiser.min_gru(name, CHANNELS, CHANNELS)
    initialiser.dense("speech", CHANNELS, 1)
    return initialiser.arrays


def state_shapes() -> dict[str, tuple[int, ...]]:
    """State name -> shape without the batch dimension."""
    shapes: dict[str, tuple[int, ...]] = {"conv1": (_TAPS - 1, MEL_BINS), "conv2": (_TAPS - 1, CHANNELS)}
    return shapes | {name: (CHANNELS,) for name in _RECURRENT}


def network(weights: Weights, samples: tf.Tensor, states: States, mode: Mode = INFERENCE) -> tuple[tf.Tensor, States]:
    """Logits of speech from samples.

    Args:
        weights: By name.
        samples: float32 [N, 240 + S], the first 240 from before the block; S fixed.
        states: The states before the block.
        mode: Training, from states of zeros, or inference.

    Returns:
        Logits [N, S / 160] and the states after the block.
    """
    after: States = {}
    x = features(samples)
    for name in ("conv1", "conv2"):
        padded = tf.concat([states[name], x], axis=1)
        after[name] = padded[:, -(_TAPS - 1) :]
        x = tf.nn.relu(conv(weights, name, padded, 1, mode))
    for name in _RECURRENT:
        outputs, after[name] = min_gru(weights, name, x, states[name], mode)
        x += outputs
    return tf.squeeze(dense(weights, "speech", x, mode), axis=2), after


def whole(weights: Weights, pcm: tf.Tensor, mode: Mode = INFERENCE) -> tf.Tensor:
    """Logits [N, T / 160] of whole recordings, float32 [N, T]."""
    batch = tf.shape(pcm)[0]
    states = {name: tf.zeros([batch, *shape]) for name, shape in state_shapes().items()}
    return network(weights, tf.pad(pcm, [[0, 0], [CONTEXT_SAMPLES, 0]]), states, mode)[0]


def step(weights: Weights, samples: tf.Tensor, **states_in: tf.Tensor) -> dict[str, tf.Tensor]:
    """One call as it is exported: 240 + 1280 samples and the states to ``speech`` and the next states."""
    states = {name.removesuffix("_in"): state for name, state in states_in.items()}
    logits, after = network(weights, samples, states)
    return {"speech": tf.sigmoid(logits)} | {f"{k}_out": v for k, v in after.items()}


def step_inputs() -> dict[str, tf.TensorSpec]:
    """Names and shapes of the inputs of `step`."""
    shapes: dict[str, tuple[int, ...]] = {"samples": (CONTEXT_SAMPLES + BLOCK_SAMPLES,)}
    shapes |= {f"{name}_in": shape for name, shape in state_shapes().items()}
    return {name: tf.TensorSpec([None, *s], tf.float32, name) for name, s in shapes.items()}
