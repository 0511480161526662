"""Spectra in numpy, as the runtime does it around the denoiser's graph."""

import numpy as np

from training import denoise_network as net


def analyse(pcm: np.ndarray) -> np.ndarray:
    """Windowed spectra, complex64 [N, T, 257], of samples float32 [N, S]."""
    frames = np.lib.stride_tricks.sliding_window_view(pcm, net.WINDOW_SAMPLES, axis=1)
    return np.asarray(np.fft.rfft(frames[:, :: net.HOP_SAMPLES] * net.window()), np.complex64)


def log_features(spectra: np.ndarray) -> np.ndarray:
    """The network's input, float32 [N, T, 257]."""
    logarithm = np.log(np.maximum(np.abs(spectra), net.FEATURE_FLOOR))
    return np.asarray(logarithm * net.FEATURE_SCALE + net.FEATURE_OFFSET, np.float32)
