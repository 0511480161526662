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


def gru_step(weights: Weights, name: str, projected: tf.Tensor, state: tf.Tensor) -> tf.Tensor:
    """One step of a GRU.

    Args:
        weights: The network's weights.
        name: The layer.
        projected: [N, 3 * units], the input after the layer's input product.
        state: [N, units].

    Returns:
        The next state [N, units], which is the output as well.
    """
    kernel, bias = weights[f"{name}/recurrent/kernel"], weights[f"{name}/recurrent/bias"]
    recurrent = tf.matmul(state, kernel) + bias
    update_x, reset_x, new_x = tf.split(projected, 3, axis=1)
    update_h, reset_h, new_h = tf.split(recurrent, 3, axis=1)
    update = tf.sigmoid(update_x + update_h)
    new = tf.tanh(new_x + tf.sigmoid(reset_x + reset_h) * new_h)
    return new + update * (state - new)


def gru_unrolled(
    weights: Weights, name: str, x: tf.Tensor, state: tf.Tensor, frames: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """A GRU over a fixed number of frames, for export.

    Args:
        weights: The network's weights.
        name: The layer.
        x: [N, frames, inputs].
        state: [N, units].
        frames: How many.

    Returns:
        The outputs [N, frames, units] and the last state.
    """
    projected = tf.matmul(x, weights[f"{name}/input/kernel"]) + weights[f"{name}/input/bias"]
    outputs = []
    for frame in range(frames):
        state = gru_step(weights, name, projected[:, frame], state)
        outputs.append(state)
    return tf.stack(outputs, axis=1), state


def gru_whole(weights: Weights, name: str, x: tf.Tensor, state: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """`gru_unrolled` over any number of frames, for training."""
    projected = tf.matmul(x, weights[f"{name}/input/kernel"]) + weights[f"{name}/input/bias"]
    by_time = tf.transpose(projected, [1, 0, 2])
    outputs = tf.scan(lambda last, frame: gru_step(weights, name, frame, last), by_time, state)
    return tf.transpose(outputs, [1, 0, 2]), outputs[-1]
