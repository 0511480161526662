"""Recordings of people that no training uses, for the denoiser and the voice detector."""

from pathlib import Path

import numpy as np
import soundfile
import soxr

SAMPLE_RATE_HZ = 16000
_LONGEST_SAMPLES = 8 * SAMPLE_RATE_HZ


def load_speech(shared: Path) -> dict[str, np.ndarray]:
    """Read sentences by name: float32 [T], 16 kHz, peak 0.5, at most 8 s."""
    folder = shared / "data" / "speech"
    paths = sorted(folder.glob("librivox/*.wav")) + sorted(folder.glob("cards/*.wav"))
    paths += [folder / name for name in ("84-121550-0000.wav", "jfk_16k.wav", "goforward.wav")]
    speech = {}
    for path in paths:
        pcm, rate_hz = soundfile.read(path, dtype="float32")
        pcm = np.asarray(soxr.resample(pcm, rate_hz, SAMPLE_RATE_HZ), np.float32)[:_LONGEST_SAMPLES]
        speech[path.stem] = pcm * np.float32(0.5 / np.abs(pcm).max())
    return speech
