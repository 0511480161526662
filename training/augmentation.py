"""Changes to clean speech that leave the words as they are: tempo, voice, room, microphone, line."""

import numpy as np
import soxr
from scipy.fft import irfft, next_fast_len, rfft

SAMPLE_RATE_HZ = 16000
Rng = np.random.Generator

_FRAME = 480
_HOP = 240
_SEARCH = 120


def stretch(pcm: np.ndarray, tempo: float) -> np.ndarray:
    """Faster (tempo > 1) or slower speech at the same pitch, by overlapping similar frames.

    Args:
        pcm: float32 [T].
        tempo: Speed over that of the original.

    Returns:
        float32, about T / tempo samples.
    """
    if len(pcm) < 4 * _FRAME:
        return pcm
    window = np.hanning(_FRAME).astype(np.float32)
    count = int((len(pcm) - _FRAME - 2 * _SEARCH) / (_HOP * tempo))
    padded = np.concatenate([pcm, np.zeros(_FRAME + 2 * _SEARCH, np.float32)])
    output = np.zeros(count * _HOP + _FRAME, np.float32)
    position = 0
    for frame in range(count):
        output[frame * _HOP : frame * _HOP + _FRAME] += padded[position : position + _FRAME] * window
        natural = padded[position + _HOP : position + _HOP + _FRAME : 2]
        wanted = max(0, int((frame + 1) * _HOP * tempo) - _SEARCH)
        candidates = padded[wanted : wanted + _FRAME + 2 * _SEARCH : 2]
        position = wanted + 2 * int(np.argmax(np.correlate(candidates, natural, "valid")))
    return output


def shift_voice(pcm: np.ndarray, factor: float) -> np.ndarray:
    """A voice with a vocal tract that much shorter (and higher), at the same tempo."""
    shorter = soxr.resample(pcm, SAMPLE_RATE_HZ * factor, SAMPLE_RATE_HZ, quality="LQ")
    return stretch(np.asarray(shorter, np.float32), 1.0 / factor)


def room(rng: Rng, pcm: np.ndarray) -> np.ndarray:
    """The speech in a simulated room: early reflections and a decaying tail, same length."""
    reverberation_s = rng.uniform(0.08, 0.6)
    length = int(reverberation_s * SAMPLE_RATE_HZ)
    decay = np.exp(-6.9 * np.arange(length) / length)
    response = rng.standard_normal(length) * decay * np.sqrt(6.9 / length)
    response *= 10 ** (rng.uniform(-20, -3) / 20)
    response[: int(rng.uniform(0.001, 0.008) * SAMPLE_RATE_HZ)] = 0.0
    for delay in rng.integers(16, 640, 4):
        if delay < length:
            response[delay] += rng.uniform(-0.3, 0.3)
    response[0] = 1.0
    size = next_fast_len(len(pcm) + length, real=True)
    spectrum = rfft(pcm, size) * rfft(response.astype(np.float32), size)
    return np.asarray(irfft(spectrum, size)[: len(pcm)], np.float32)


def cut_ends(rng: Rng, pcm: np.ndarray) -> np.ndarray:
    """A word as whoever cut it out too tightly leaves it, such as a recorder that starts late.

    Args:
        rng: Draws which ends are cut: often none, more often the start than the end.
        pcm: [T], any type, with little silence around the word.

    Returns:
        At least 0.55 T samples.
    """
    first, last = 0, len(pcm)
    if rng.random() < 0.35:
        first = int(min(rng.uniform(0.01, 0.11) * SAMPLE_RATE_HZ, 0.3 * len(pcm)))
    if rng.random() < 0.15:
        last -= int(min(rng.uniform(0.01, 0.08) * SAMPLE_RATE_HZ, 0.15 * len(pcm)))
    return pcm[first:last]


def _line_gain_db(rng: Rng, frequency_hz: np.ndarray) -> np.ndarray:
    points_hz = np.array([0, 150, 300, 600, 1200, 2000, 3000, 4500, 8000])
    gains = rng.normal(0.0, rng.uniform(0.5, 4.0), len(points_hz))
    gain_db = np.interp(frequency_hz, points_hz, gains)
    octaves = np.log2(np.maximum(frequency_hz, 60.0) / 1000.0)
    gain_db += rng.uniform(-4.0, 4.0) * octaves
    kind = rng.random()
    if kind < 0.2:
        low, high = rng.uniform(180, 350), rng.uniform(3200, 3600)
        gain_db -= np.clip((low - frequency_hz) * 0.2, 0, 40)
        gain_db -= np.clip((frequency_hz - high) * 0.1, 0, 60)
    elif kind < 0.5:
        gain_db -= np.clip((frequency_hz - rng.uniform(3700, 4000)) * 0.15, 0, 70)
    return np.asarray(gain_db)


def line(rng: Rng, pcm: np.ndarray) -> np.ndarray:
    """A microphone and a line: random equaliser and tilt, often band-limited as by 8 kHz sampling or telephone."""
    size = next_fast_len(len(pcm) + 400, real=True)
    spectrum = rfft(pcm, size)
    frequency_hz = np.arange(len(spectrum)) * (SAMPLE_RATE_HZ / size)
    filtered = spectrum * (10 ** (_line_gain_db(rng, frequency_hz) / 20)).astype(np.float32)
    return np.asarray(irfft(filtered, size)[: len(pcm)], np.float32)


def vary_speech(rng: Rng, pcm: np.ndarray) -> np.ndarray:
    """A random selection of all of the above; float32 [T] to float32 [about 0.8 T .. 1.25 T]."""
    if rng.random() < 0.5:
        factor = float(np.exp(rng.uniform(np.log(0.85), np.log(1.18))))
        pcm = np.asarray(soxr.resample(pcm, SAMPLE_RATE_HZ * factor, SAMPLE_RATE_HZ, quality="LQ"))
    elif rng.random() < 0.6:
        pcm = shift_voice(pcm, float(np.exp(rng.uniform(np.log(0.82), np.log(1.22)))))
    if rng.random() < 0.3:
        pcm = stretch(pcm, float(rng.uniform(0.8, 1.3)))
    if rng.random() < 0.25:
        pcm = room(rng, pcm)
    if rng.random() < 0.8:
        pcm = line(rng, pcm)
    return np.asarray(pcm, np.float32)
