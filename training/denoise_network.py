"""The noise suppressor: three gated recurrent layers turn log magnitudes into a gain per frequency."""

import numpy as np
import tensorflow as tf

from training.layers import INFERENCE, Mode, dense, light_gru
from training.weights import Arrays, Initialiser, Weights

WINDOW_SAMPLES = 512
HOP_SAMPLES = 256
BINS = WINDOW_SAMPLES // 2 + 1
CALL_FRAMES = 4
FEATURE_FLOOR = 1e-4
FEATURE_SCALE = 0.3
FEATURE_OFFSET = 0.9
UNITS = 160
STATES = ("gru1", "gru2", "gru3")


def initialise(seed: int) -> Arrays:
    """Fresh weights."""
    initialiser = Initialiser(seed)
    initialiser.dense("input", BINS, UNITS, 1.4)
    for name in STATES:
        initialiser.min_gru(name, UNITS, UNITS)
    initialiser.dense("mask", UNITS, BINS)
    initialiser.arrays["mask/bias"] += 1.0
    return with_recurrence(initialiser.arrays)


def with_recurrence(arrays: Arrays) -> Arrays:
    """The same network with gates that see the state, at first with weights of zero, where they have not done so."""
    unseen = np.zeros((UNITS, 2 * UNITS), np.float32)
    return {f"{name}/recurrent/kernel": unseen for name in STATES} | arrays


def window() -> np.ndarray:
    """Analysis and synthesis window: square root of a periodic Hann window, float32 [512]."""
    phase = 2.0 * np.pi * np.arange(WINDOW_SAMPLES) / WINDOW_SAMPLES
    return np.sqrt(0.5 - 0.5 * np.cos(phase)).astype(np.float32)


def log_magnitude(magnitude: tf.Tensor) -> tf.Tensor:
    """The network's input from magnitudes [..., 257]."""
    return tf.math.log(tf.maximum(magnitude, FEATURE_FLOOR)) * FEATURE_SCALE + FEATURE_OFFSET


def network(
    weights: Weights, features: tf.Tensor, states: list[tf.Tensor], mode: Mode = INFERENCE
) -> tuple[tf.Tensor, list[tf.Tensor]]:
    """Gains from log magnitudes.

    Args:
        weights: By name.
        features: float32 [N, T, 257], T fixed.
        states: Three of [N, 160].
        mode: Training, from states of zeros, or inference.

    Returns:
        The mask [N, T, 257], 0..1, and the states after these frames.
    """
    x = tf.nn.relu(dense(weights, "input", features, mode))
    after = []
    for name, state in zip(STATES, states, strict=True):
        outputs, last = light_gru(weights, name, x, state, mode)
        x += outputs
        after.append(last)
    return tf.sigmoid(dense(weights, "mask", x, mode)), after


def step(weights: Weights, features: tf.Tensor, **states_in: tf.Tensor) -> dict[str, tf.Tensor]:
    """One call as it is exported: 4 frames of features and the states to ``mask`` and the next states."""
    states = [states_in[f"{name}_in"] for name in STATES]
    mask, after = network(weights, features, states)
    return {"mask": mask} | {f"{n}_out": s for n, s in zip(STATES, after, strict=True)}


def step_inputs() -> dict[str, tf.TensorSpec]:
    """Names and shapes of the inputs of `step`."""
    inputs = {"features": tf.TensorSpec([None, CALL_FRAMES, BINS], tf.float32, "features")}
    for name in STATES:
        inputs[f"{name}_in"] = tf.TensorSpec([None, UNITS], tf.float32, f"{name}_in")
    return inputs
