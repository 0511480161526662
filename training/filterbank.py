"""Kaldi's log-mel filterbank as one convolution and one matrix product.

DC removal, pre-emphasis, the povey window and the 512-point DFT are linear, so one kernel holds them all.
Samples stay in -1..1 (Kaldi's own recipes scale them to 16 bits; the difference is a constant in the logarithm).
"""

import numpy as np
import tensorflow as tf

SAMPLE_RATE_HZ = 16000
WINDOW_SAMPLES = 400
HOP_SAMPLES = 160
CONTEXT_SAMPLES = WINDOW_SAMPLES - HOP_SAMPLES
DFT_SAMPLES = 512
MEL_BINS = 40
# Recordings made at 8 kHz must look the same as any others, so nothing above 3.8 kHz is used.
LOW_HZ = 80.0
HIGH_HZ = 3800.0
PRE_EMPHASIS = 0.97
ENERGY_FLOOR = 1e-5
SCALE = 0.25
OFFSET = 1.0


def mel_weights() -> np.ndarray:
    """Triangles over the DFT bins: float64 [257, 40], computed in mel as Kaldi does."""
    points_hz = np.arange(DFT_SAMPLES // 2 + 1) * SAMPLE_RATE_HZ / DFT_SAMPLES
    mel = 1127.0 * np.log1p(points_hz / 700.0)
    low, high = (1127.0 * np.log1p(hz / 700.0) for hz in (LOW_HZ, HIGH_HZ))
    borders = np.linspace(low, high, MEL_BINS + 2)
    left, centre, right = borders[:-2], borders[1:-1], borders[2:]
    rising = (mel[:, None] - left) / (centre - left)
    falling = (right - mel[:, None]) / (right - centre)
    weights = np.maximum(0.0, np.minimum(rising, falling))
    weights[-1] = 0.0
    return np.asarray(weights)


def frame_matrix() -> np.ndarray:
    """DC removal, pre-emphasis and window of one frame: float64 [400 samples in, 400 samples out]."""
    identity = np.eye(WINDOW_SAMPLES)
    frame = identity - identity.mean(axis=0)
    previous = np.vstack([frame[:1], frame[:-1]])
    phase = 2.0 * np.pi * np.arange(WINDOW_SAMPLES) / (WINDOW_SAMPLES - 1)
    povey = (0.5 - 0.5 * np.cos(phase)) ** 0.85
    return np.asarray(((frame - PRE_EMPHASIS * previous) * povey[:, None]).T)


def kernels() -> tuple[np.ndarray, np.ndarray]:
    """The convolution kernel float32 [400, 1, 2 * bins] and the mel matrix float32 [bins, 40].

    Only the DFT bins under a triangle are kept.
    """
    mel = mel_weights()
    used = np.flatnonzero(mel.any(axis=1))
    phase = 2.0 * np.pi * np.outer(np.arange(WINDOW_SAMPLES), used) / DFT_SAMPLES
    transform = np.concatenate([np.cos(phase), np.sin(phase)], axis=1)
    kernel = (frame_matrix() @ transform)[:, None, :]
    return kernel.astype(np.float32), mel[used].astype(np.float32)


_KERNEL, _MEL = kernels()


def features(samples: tf.Tensor) -> tf.Tensor:
    """Normalised log-mel features.

    Args:
        samples: float32 [N, S], 16 kHz, -1..1, S >= 400.

    Returns:
        float32 [N, 1 + (S - 400) // 160, 40]: log(max(energy, 1e-5)) * 0.25 + 1.0, about -2..3.
    """
    spectrum = tf.nn.conv1d(tf.expand_dims(samples, 2), _KERNEL, HOP_SAMPLES, "VALID")
    bins = _MEL.shape[0]
    power = tf.square(spectrum[:, :, :bins]) + tf.square(spectrum[:, :, bins:])
    energy = tf.maximum(tf.matmul(power, _MEL), ENERGY_FLOOR)
    return tf.math.log(energy) * SCALE + OFFSET
