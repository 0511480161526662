"""Noises, made afresh for each example; all have a root mean square of one."""

from collections.abc import Callable

import numpy as np
from scipy.signal import lfilter

SAMPLE_RATE_HZ = 16000
Rng = np.random.Generator


def _unit(noise: np.ndarray) -> np.ndarray:
    return np.asarray(noise / (np.sqrt(np.mean(np.square(noise))) + 1e-9), np.float32)


def white(rng: Rng, length: int) -> np.ndarray:
    """Equal power at all frequencies."""
    return rng.standard_normal(length).astype(np.float32)


def pink(rng: Rng, length: int) -> np.ndarray:
    """Power that falls with frequency, 3 dB an octave."""
    spectrum = np.fft.rfft(rng.standard_normal(length))
    spectrum /= np.sqrt(np.maximum(1.0, np.arange(len(spectrum))))
    return _unit(np.fft.irfft(spectrum, length))


def coloured(rng: Rng, length: int) -> np.ndarray:
    """A random first-order tilt, from hiss to rumble."""
    pole = rng.uniform(-0.5, 0.985)
    return _unit(lfilter([1.0], [1.0, -pole], rng.standard_normal(length)))


def hum(rng: Rng, length: int) -> np.ndarray:
    """A mains or motor tone with harmonics, and some hiss."""
    time = np.arange(length, dtype=np.float32) / SAMPLE_RATE_HZ
    fundamental_hz = rng.uniform(45, 260)
    total = rng.uniform(0.0, 0.3) * rng.standard_normal(length).astype(np.float32)
    for harmonic in range(1, rng.integers(3, 16)):
        phase = 2 * np.pi * fundamental_hz * harmonic * time + rng.uniform(0, 6.3)
        total += np.sin(phase) * np.float32(rng.random() / harmonic ** rng.uniform(0.5, 1.5))
    return _unit(total)


def clicks(rng: Rng, length: int) -> np.ndarray:
    """Short bursts over a faint hiss."""
    total = rng.uniform(0.0, 0.03) * rng.standard_normal(length)
    count = 1 + rng.poisson(length / SAMPLE_RATE_HZ * rng.uniform(1, 12))
    for start in rng.integers(0, max(1, length - 1200), count):
        size = min(1200, length - start)
        burst = lfilter([1.0], [1.0, -rng.uniform(0, 0.95)], rng.standard_normal(size))
        total[start : start + size] += burst * np.exp(-np.arange(size) / rng.uniform(3, 250))
    return _unit(total)


def band(rng: Rng, length: int) -> np.ndarray:
    """Noise around one frequency, from a whistle to a rush of air."""
    angle = 2 * np.pi * np.exp(rng.uniform(np.log(120), np.log(6000))) / SAMPLE_RATE_HZ
    radius = rng.uniform(0.7, 0.995)
    poles = [1.0, -2 * radius * np.cos(angle), radius**2]
    return _unit(lfilter([1.0], poles, rng.standard_normal(length)))


def babble(rng: Rng, length: int, speech: list[np.ndarray], least: int = 2) -> np.ndarray:
    """Several voices at once, from int16 recordings of speech."""
    total = np.zeros(length, np.float32)
    for _ in range(rng.integers(least, 7)):
        position = -int(rng.integers(0, 8000))
        gain = np.float32(10 ** (rng.uniform(-8, 0) / 20))
        while position < length:
            piece = speech[rng.integers(len(speech))]
            first, last = max(0, position), min(length, position + len(piece))
            if last > first:
                total[first:last] += gain * piece[first - position : last - position]
            position += len(piece) + int(rng.integers(0, 4000))
    return _unit(total)


Maker = Callable[[Rng, int], np.ndarray]

_KINDS: tuple[Maker, ...] = (white, pink, coloured, hum, clicks, band)


def any_noise(rng: Rng, length: int, speech: list[np.ndarray] | None = None) -> np.ndarray:
    """A noise of a random kind, sometimes two, sometimes swelling; babble when given speech."""
    if speech is not None and rng.random() < 0.15:
        return babble(rng, length, speech)
    noise = _KINDS[rng.integers(len(_KINDS))](rng, length)
    if rng.random() < 0.25:
        noise = noise + rng.uniform(0.2, 1.0) * _KINDS[rng.integers(len(_KINDS))](rng, length)
    if rng.random() < 0.3:
        time = np.arange(length) / SAMPLE_RATE_HZ
        noise = noise * (0.2 + np.abs(np.sin(np.pi * rng.uniform(0.3, 6) * time + rng.uniform(0, 3))))
    return _unit(noise)


def at_snr(speech: np.ndarray, noise: np.ndarray, snr_db: float) -> np.ndarray:
    """The noise scaled so that it lies that far below the power of the speech where there is speech."""
    power = np.square(speech)
    loud = power[power > 1e-4 * power.max()] if len(power) else power
    level = float(np.mean(loud)) if len(loud) else 1e-4
    return np.asarray(noise * np.sqrt(level / 10 ** (snr_db / 10)), np.float32)
