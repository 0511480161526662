"""Spectra and back in numpy, as the runtime does it around the denoiser's graph."""

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


def synthesise(spectra: np.ndarray) -> np.ndarray:
    """Samples float32 [N, (T + 1) * 256] of spectra [N, T, 257]; the first and last hop are faded."""
    frames = np.fft.irfft(spectra) * net.window()
    count, hop = frames.shape[1], net.HOP_SAMPLES
    pcm = np.zeros((frames.shape[0], (count + 1) * hop), np.float32)
    pcm[:, : count * hop] += frames[:, :, :hop].reshape(len(pcm), -1)
    pcm[:, hop:] += frames[:, :, hop:].reshape(len(pcm), -1)
    return pcm
