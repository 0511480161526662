"""Weights by name: made, saved, and folded for export.

A network is a function over such a dict. In training the values are variables, in export they are arrays.
"""

from pathlib import Path

import numpy as np
import tensorflow as tf

Weights = dict[str, tf.Tensor]
Arrays = dict[str, np.ndarray]
NORM_EPSILON = 1e-3
_STATISTICS = ("/mean", "/variance")


class Initialiser:
    """Collects freshly drawn weights; the same seed gives the same weights."""

    def __init__(self, seed: int) -> None:
        self.arrays: Arrays = {}
        self._rng = np.random.default_rng(seed)

    def dense(self, name: str, inputs: int, outputs: int, scale: float = 1.0) -> None:
        """A kernel [inputs, outputs] and a bias."""
        self._draw(name, (inputs, outputs), inputs, scale)

    def conv(self, name: str, width: int, inputs: int, outputs: int) -> None:
        """A kernel [width, inputs, outputs] and a bias."""
        self._draw(name, (width, inputs, outputs), width * inputs, 1.0)

    def depthwise(self, name: str, width: int, channels: int) -> None:
        """A kernel [width, 1, channels, 1] and a bias [channels]."""
        self._draw(name, (width, 1, channels, 1), width, 1.0)
        self.arrays[f"{name}/bias"] = np.zeros(channels, np.float32)

    def norm(self, name: str, channels: int) -> None:
        """Batch normalisation of the last dimension."""
        for part, value in (("gamma", 1.0), ("beta", 0.0), ("mean", 0.0), ("variance", 1.0)):
            self.arrays[f"{name}/{part}"] = np.full(channels, value, np.float32)

    def min_gru(self, name: str, inputs: int, units: int) -> None:
        """A kernel [inputs, 2 * units] and a bias whose gates begin with memories of 1 to 20 frames."""
        self._draw(name, (inputs, 2 * units), inputs, 1.0)
        self.arrays[f"{name}/bias"][:units] = self._rng.uniform(-3.0, 1.0, units)

    def _draw(self, name: str, shape: tuple[int, ...], fan_in: int, scale: float) -> None:
        kernel = self._rng.standard_normal(shape) * scale / np.sqrt(fan_in)
        self.arrays[f"{name}/kernel"] = kernel.astype(np.float32)
        self.arrays[f"{name}/bias"] = np.zeros(shape[-1], np.float32)


def variables(arrays: Arrays) -> dict[str, tf.Variable]:
    """Variables for training; running statistics are not trained by gradient."""
    return {
        name: tf.Variable(array, trainable=not name.endswith(_STATISTICS), name=name) for name, array in arrays.items()
    }


def values(weights: dict[str, tf.Variable]) -> Arrays:
    """The present values of variables."""
    return {name: weight.numpy() for name, weight in weights.items()}


def save_weights(path: Path, arrays: Arrays) -> None:
    """Writes weights as float16; statistics stay float32."""
    path.parent.mkdir(parents=True, exist_ok=True)
    halves = {name: array if name.endswith(_STATISTICS) else array.astype(np.float16) for name, array in arrays.items()}
    # The stub takes every keyword for its flag.
    np.savez_compressed(path, **halves)  # type: ignore[arg-type]


def load_weights(path: Path) -> Arrays:
    """Reads weights back as float32."""
    with np.load(path) as file:
        return {name: file[name].astype(np.float32) for name in file.files}


def fold_norms(arrays: Arrays) -> Arrays:
    """The same network without batch normalisation.

    A norm called ``X/before`` is folded into the kernel X that follows it, ``X/after`` into the kernel X that
    precedes it.
    """
    folded = {name: array for name, array in arrays.items() if "/before/" not in name}
    folded = {name: array for name, array in folded.items() if "/after/" not in name}
    for name in arrays:
        layer, _, part = name.rpartition("/gamma")
        if name.endswith("/gamma") and not part:
            base, _, place = layer.rpartition("/")
            _fold(folded, base, place, arrays, layer)
    return folded


def _fold(folded: Arrays, base: str, place: str, arrays: Arrays, norm: str) -> None:
    gain = arrays[f"{norm}/gamma"] / np.sqrt(arrays[f"{norm}/variance"] + NORM_EPSILON)
    shift = arrays[f"{norm}/beta"] - arrays[f"{norm}/mean"] * gain
    kernel, bias = folded[f"{base}/kernel"], folded[f"{base}/bias"]
    if place == "before":
        folded[f"{base}/bias"] = bias + shift @ kernel
        folded[f"{base}/kernel"] = gain[:, None] * kernel
        return
    depthwise = kernel.ndim == 4
    folded[f"{base}/kernel"] = kernel * (gain[:, None] if depthwise else gain)
    folded[f"{base}/bias"] = bias * gain + shift
