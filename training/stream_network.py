"""The streaming recogniser: a small causal Conformer with CTC, 8 feature frames in and 2 frames out per call."""

import numpy as np
import tensorflow as tf

from training.conformer import Memory, Size, causal_block, initialise_recogniser
from training.filterbank import MEL_BINS
from training.layers import INFERENCE, Mode, conv, dense, swish
from training.weights import Arrays, Weights

SIZE = Size(channels=96, heads=4, head_channels=24, expansion=1, taps=9, blocks=3)
CALL_FEATURES = 8
CALL_FRAMES = 2
# Frames of 40 ms that the attention looks back over, beside those of the call.
CONTEXT_FRAMES = 24
_FRONT_TAPS = 5
_FRONT_MEMORY = _FRONT_TAPS - 2
_MASKED = -1e4

States = dict[str, tf.Tensor]


def initialise(seed: int) -> Arrays:
    """Fresh weights."""
    return initialise_recogniser(seed, SIZE, _FRONT_TAPS)


def state_shapes() -> dict[str, tuple[int, int]]:
    """State name -> shape without the batch dimension."""
    shapes = {"front1": (_FRONT_MEMORY, MEL_BINS), "front2": (_FRONT_MEMORY, SIZE.channels)}
    for block in range(SIZE.blocks):
        shapes[f"block{block}_conv"] = (SIZE.taps - 1, SIZE.channels)
        shapes[f"block{block}_key"] = (CONTEXT_FRAMES, SIZE.head_channels)
        shapes[f"block{block}_value"] = (CONTEXT_FRAMES, SIZE.head_channels)
    return shapes


def initial_states(batch: int | tf.Tensor) -> States:
    """Zeros: the state of a session that has heard nothing."""
    return {name: tf.zeros([batch, *shape]) for name, shape in state_shapes().items()}


def whole_mask(frames: int | tf.Tensor) -> tf.Tensor:
    """What a frame may attend to when a whole utterance is computed at once.

    Args:
        frames: Frames in the utterance.

    Returns:
        [1, frames * heads, context + frames]: 0 where a call would have the key at hand, -1e4 elsewhere.
    """
    first = tf.range(frames) // CALL_FRAMES * CALL_FRAMES
    key = tf.range(CONTEXT_FRAMES + frames)
    offset = key[None, :] - first[:, None]
    seen = (offset >= 0) & (offset < CONTEXT_FRAMES + CALL_FRAMES)
    mask = tf.where(seen, 0.0, _MASKED)
    return tf.repeat(mask, SIZE.heads, axis=0)[None]


def encode(
    weights: Weights,
    features: tf.Tensor,
    states: States,
    mask: tf.Tensor | None = None,
    mode: Mode = INFERENCE,
) -> tuple[tf.Tensor, States]:
    """Feature frames to what the blocks make of them.

    Args:
        weights: By name.
        features: float32 [N, T, 40].
        states: The states before these frames.
        mask: `whole_mask` when T is more than one call.
        mode: Training or inference.

    Returns:
        [N, T // 4, channels] and the states after these frames.
    """
    after: States = {}
    padded = tf.concat([states["front1"], features], axis=1)
    after["front1"] = padded[:, -_FRONT_MEMORY:]
    x = swish(conv(weights, "front1", padded, 2, mode))
    padded = tf.concat([states["front2"], x], axis=1)
    after["front2"] = padded[:, -_FRONT_MEMORY:]
    x = swish(conv(weights, "front2", padded, 2, mode))
    for block in range(SIZE.blocks):
        name = f"block{block}"
        memory = Memory(*(states[f"{name}_{part}"] for part in Memory._fields))
        x, memory = causal_block(weights, name, x, memory, mask, SIZE, mode)
        after |= {f"{name}_{part}": getattr(memory, part) for part in Memory._fields}
    return x, after


def encode_whole(weights: Weights, features: tf.Tensor, mode: Mode = INFERENCE) -> tf.Tensor:
    """`encode` of whole utterances, float32 [N, T, 40], T a multiple of 8."""
    mask = whole_mask(tf.shape(features)[1] // 4)
    return encode(weights, features, initial_states(tf.shape(features)[0]), mask, mode)[0]


def whole(weights: Weights, features: tf.Tensor, mode: Mode = INFERENCE) -> tf.Tensor:
    """Logits [N, T // 4, tokens] of whole utterances, float32 [N, T, 40], T a multiple of 8."""
    return dense(weights, "out", encode_whole(weights, features, mode), mode)


def step(weights: Weights, features: tf.Tensor, **states_in: tf.Tensor) -> dict[str, tf.Tensor]:
    """One call as it is exported: 8 feature frames and the states ``*_in`` to ``log_probs`` and ``*_out``."""
    states = {name.removesuffix("_in"): state for name, state in states_in.items()}
    x, after = encode(weights, features, states)
    return {"log_probs": tf.nn.log_softmax(dense(weights, "out", x, INFERENCE))} | {
        f"{k}_out": v for k, v in after.items()
    }


def step_inputs() -> dict[str, tf.TensorSpec]:
    """Names and shapes of the inputs of `step`."""
    shapes = {"features": (CALL_FEATURES, MEL_BINS)}
    shapes |= {f"{name}_in": shape for name, shape in state_shapes().items()}
    return {name: tf.TensorSpec([None, *s], tf.float32, name) for name, s in shapes.items()}


def zero_states(batch: int) -> Arrays:
    """`initial_states` as arrays, under the names of the graph's inputs."""
    return {f"{k}_in": np.zeros((batch, *s), np.float32) for k, s in state_shapes().items()}
