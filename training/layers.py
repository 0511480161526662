"""Layers as functions over named weights; the same code is trained and exported."""

import tensorflow as tf

from training.weights import NORM_EPSILON, Weights


class Mode:
    """How a network is being run.

    In training, batch normalisation uses the statistics of the batch and `updates` collects them.
    """

    def __init__(self, training: bool = False) -> None:
        self.training = training
        self.updates: dict[str, tf.Tensor] = {}


INFERENCE = Mode()


def norm(weights: Weights, name: str, x: tf.Tensor, mode: Mode) -> tf.Tensor:
    """Batch normalisation over all but the last dimension; nothing where it has been folded away."""
    if f"{name}/gamma" not in weights:
        return x
    if mode.training:
        mean, variance = tf.nn.moments(x, list(range(len(x.shape) - 1)))
        mode.updates[f"{name}/mean"], mode.updates[f"{name}/variance"] = mean, variance
    else:
        mean, variance = weights[f"{name}/mean"], weights[f"{name}/variance"]
    gain = weights[f"{name}/gamma"] * tf.math.rsqrt(variance + NORM_EPSILON)
    return x * gain + (weights[f"{name}/beta"] - mean * gain)


def dense(weights: Weights, name: str, x: tf.Tensor, mode: Mode) -> tf.Tensor:
    """x [..., inputs] -> [..., outputs], normalised first where the weights say so."""
    x = norm(weights, f"{name}/before", x, mode)
    return tf.matmul(x, weights[f"{name}/kernel"]) + weights[f"{name}/bias"]


def dense_parts(weights: Weights, name: str, x: tf.Tensor, widths: tuple[int, ...], mode: Mode) -> list[tf.Tensor]:
    """One dense layer whose output is cut into parts of the given widths.

    Outside training each part is a product of its own, so that INT8 gives it a scale of its own.
    """
    if mode.training:
        return list(tf.split(dense(weights, name, x, mode), widths, axis=-1))
    x = norm(weights, f"{name}/before", x, mode)
    kernels = tf.split(weights[f"{name}/kernel"], widths, axis=1)
    biases = tf.split(weights[f"{name}/bias"], widths)
    return [tf.matmul(x, kernel) + bias for kernel, bias in zip(kernels, biases, strict=True)]


def conv(weights: Weights, name: str, x: tf.Tensor, stride: int, mode: Mode) -> tf.Tensor:
    """x [N, T, inputs] -> [N, T', outputs], valid padding, normalised after."""
    y = tf.nn.conv1d(x, weights[f"{name}/kernel"], stride, "VALID") + weights[f"{name}/bias"]
    return norm(weights, f"{name}/after", y, mode)


def depthwise(weights: Weights, name: str, x: tf.Tensor, mode: Mode) -> tf.Tensor:
    """x [N, T, channels] -> [N, T - width + 1, channels], one filter per channel, normalised after."""
    kernel = weights[f"{name}/kernel"]
    y = tf.nn.depthwise_conv2d(tf.expand_dims(x, 2), kernel, [1, 1, 1, 1], "VALID")
    y = tf.squeeze(y + weights[f"{name}/bias"], axis=2)
    return norm(weights, f"{name}/after", y, mode)


def swish(x: tf.Tensor) -> tf.Tensor:
    """x * sigmoid(x), from operators that INT8 has."""
    return x * tf.sigmoid(x)


def _scan(keep: tf.Tensor, write: tf.Tensor, frames: int) -> tf.Tensor:
    """h[t] = keep[t] * h[t - 1] + write[t] for all t at once, h[-1] = 0, in about log2(frames) passes.

    Args:
        keep: [N, T, units].
        write: [N, T, units].
        frames: T, or more.
    """
    shift = 1
    while shift < frames:
        earlier = tf.pad(write[:, :-shift], [[0, 0], [shift, 0], [0, 0]])
        write += keep * earlier
        keep *= tf.pad(keep[:, :-shift], [[0, 0], [shift, 0], [0, 0]])
        shift *= 2
    return write


def min_gru(weights: Weights, name: str, x: tf.Tensor, state: tf.Tensor, mode: Mode) -> tuple[tf.Tensor, tf.Tensor]:
    """A GRU whose gates see the input only, so that training needs no loop (https://arxiv.org/abs/2410.01201).

    The state moves towards tanh of the input and stays within -1..1, which suits INT8.

    Args:
        weights: The network's weights.
        name: The layer.
        x: [N, T, inputs]; T is fixed outside training.
        state: [N, units]; in training zeros are taken instead.
        mode: Training or inference.

    Returns:
        The outputs [N, T, units] and the last state.
    """
    units = state.shape[1]
    update, new = dense_parts(weights, name, x, (units, units), mode)
    update, new = tf.sigmoid(update), tf.tanh(new)
    if mode.training:
        outputs = _scan(1.0 - update, update * new, x.shape[1])
        return outputs, outputs[:, -1]
    steps = []
    for frame in range(x.shape[1]):
        state = state + update[:, frame] * (new[:, frame] - state)
        steps.append(state)
    return tf.stack(steps, axis=1), state


def light_gru(weights: Weights, name: str, x: tf.Tensor, state: tf.Tensor, mode: Mode) -> tuple[tf.Tensor, tf.Tensor]:
    """A GRU without a reset gate (https://arxiv.org/abs/1803.10225); its gates see the state too.

    Arguments and results are those of `min_gru`, whose weights it takes further: ``X/recurrent/kernel``
    [units, 2 * units] is what the gates see of the state, and with zeros there the two layers are one. In training it
    costs a loop over time.
    """
    units = state.shape[1]
    updates, news = dense_parts(weights, name, x, (units, units), mode)
    recurrent = tf.split(weights[f"{name}/recurrent/kernel"], 2, axis=1)
    steps = []
    for update, new in zip(tf.unstack(updates, axis=1), tf.unstack(news, axis=1), strict=True):
        update = tf.sigmoid(update + tf.matmul(state, recurrent[0]))
        new = tf.tanh(new + tf.matmul(state, recurrent[1]))
        state = state + update * (new - state)
        steps.append(state)
    return tf.stack(steps, axis=1), state
