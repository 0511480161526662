"""Numbers of a quantised tensor: real values to integers and back, and from one tensor's scale to another's.

Only quantisation per tensor exists at a graph's inputs and outputs. Rounding is to the nearest integer, ties to the
even one (what XNNPACK does; TFLite's reference kernels take ties away from zero, which differs only on exact halves).
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

__all__ = ["Quantization", "requantize_table"]


class Quantization(NamedTuple):
    """How a tensor holds real numbers: real = (stored - zero_point) * scale; scale 0 means stored as they are."""

    dtype: np.dtype
    scale: float = 0.0
    zero_point: int = 0

    def quantize(self, values: np.ndarray) -> np.ndarray:
        """Gives the values, any shape, in the tensor's dtype: rounded and clipped to its range when it has a scale."""
        if not self.scale:
            return np.asarray(values, dtype=self.dtype)
        scale, zero_point, low, high = _constants(self)
        scaled: np.ndarray = np.divide(values, scale, dtype=np.float32)
        np.rint(scaled, out=scaled)
        np.add(scaled, zero_point, out=scaled)
        # Half the time of np.clip, which checks its arguments in Python.
        np.maximum(scaled, low, out=scaled)
        np.minimum(scaled, high, out=scaled)
        return scaled.astype(self.dtype)

    def dequantize(self, stored: np.ndarray) -> np.ndarray:
        """Gives float32 values of stored integers; a tensor without a scale comes back as it is."""
        if not self.scale:
            return stored
        scale, zero_point, _, _ = _constants(self)
        # Two thirds of the time of a subtraction that converts on the way.
        values: np.ndarray = stored.astype(np.float32)
        np.subtract(values, zero_point, out=values)
        np.multiply(values, scale, out=values)
        return values

    def zeros(self, shape: tuple[int, ...]) -> np.ndarray:
        """Gives a tensor that means 0.0 everywhere."""
        return np.full(shape, self.zero_point if self.scale else 0, dtype=self.dtype)


@lru_cache(maxsize=1024)
def _constants(numbers: Quantization) -> tuple[np.ndarray, ...]:
    """Gives scale, zero point, least and greatest value: float32 [] each, which numpy takes faster than scalars."""
    limits = np.iinfo(numbers.dtype)
    return tuple([np.array(number, np.float32) for number in (*numbers[1:], limits.min, limits.max)])


def requantize_table(source: Quantization, target: Quantization) -> np.ndarray | None:
    """Gives the table from stored values of `source` to those of `target`, or None when nothing changes.

    The table is indexed by the stored value seen as unsigned (int8 -1 is entry 255): every possible value is
    converted once here, so a state that is fed back costs one look-up.
    """
    if not source.scale or not target.scale or source[1:] == target[1:]:
        return None
    bits = 8 * source.dtype.itemsize
    stored = np.arange(1 << bits, dtype=f"u{source.dtype.itemsize}").view(source.dtype)
    table = target.quantize(source.dequantize(stored))
    return None if np.array_equal(table, stored) else table
