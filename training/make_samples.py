"""``python -m training.make_samples`` writes the project's sample recordings and their manifests into samples/."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soundfile
import soxr

from training import noise
from training.synthesis import say

SAMPLE_RATE_HZ = 16000
_PAUSE_S = 1.2
_EDGE_S = 0.6
_SEED = 11


class Sample(NamedTuple):
    """One recording to make.

    Attributes:
        file: Name in the folder; the ending gives the format.
        voice: Of espeak-ng, or of flite as ``flite:NAME``.
        utterances: Said one after the other with pauses of 1.2 s.
        background: Makes the noise.
        snr_db: Of the speech over the noise.
        rate_hz: Of the file.
        channels: Of the file; all hold the same speech, each its own noise.
    """

    file: str
    voice: str
    utterances: tuple[str, ...]
    background: Callable[[np.random.Generator, int], np.ndarray]
    snr_db: float
    rate_hz: int = SAMPLE_RATE_HZ
    channels: int = 1


SAMPLES = (
    Sample("door_code.wav", "en-us", ("four seven one", "nine two", "yes"), noise.pink, 20.0),
    Sample("lift.wav", "en-gb-x-rp", ("up", "stop", "down", "stop"), noise.hum, 15.0),
    Sample("crane.wav", "en-gb+f2", ("left left", "right", "stop"), noise.white, 15.0),
    Sample("phone_number.wav", "en-us-nyc+m5", ("five five five", "oh one two three"), noise.pink, 15.0),
    Sample("lights.wav", "en-us+f2", ("on", "off", "on", "no"), noise.clicks, 15.0),
    Sample("countdown.wav", "en-us-nyc+m5", ("three two one zero", "stop"), noise.white, 10.0),
    Sample("telephone_8khz.wav", "en-us+m4", ("six eight", "yes", "nine"), noise.pink, 20.0, 8000),
    Sample("studio_48khz.flac", "en-gb+f5", ("one two three", "stop"), noise.white, 20.0, 48000, 2),
)

# Words that the small recognisers do not know: for models of open vocabulary.
SENTENCES = (
    Sample(
        "harbour.flac",
        "flite:slt",
        ("The harbour is quiet in the morning.", "Two boats left before the sun came up."),
        noise.pink,
        25.0,
    ),
    Sample(
        "meeting.flac",
        "flite:rms",
        ("Please send the report to the office by Friday.", "We will talk about it next week."),
        noise.pink,
        25.0,
    ),
    Sample("weather.flac", "flite:awb", ("It will rain in the north, and the wind will be strong.",), noise.pink, 25.0),
)


def _speech(sample: Sample) -> np.ndarray:
    pieces: list[np.ndarray] = [np.zeros(int(_EDGE_S * SAMPLE_RATE_HZ), np.float32)]
    for index, text in enumerate(sample.utterances):
        if index:
            pieces.append(np.zeros(int(_PAUSE_S * SAMPLE_RATE_HZ), np.float32))
        pieces.append(say(text, sample.voice, speed=140).pcm / np.float32(32768))
    return np.concatenate([*pieces, np.zeros(int(1.5 * _EDGE_S * SAMPLE_RATE_HZ), np.float32)])


def render(sample: Sample, rng: np.random.Generator) -> np.ndarray:
    """The recording, float32 [T, channels], -1..1, at the rate of its file."""
    speech = 0.6 * _speech(sample)
    channels: list[np.ndarray] = []
    for _ in range(sample.channels):
        background = noise.at_snr(speech, sample.background(rng, len(speech)), sample.snr_db)
        channels.append(soxr.resample(speech + background, SAMPLE_RATE_HZ, sample.rate_hz))
    return np.asarray(np.clip(np.stack(channels, axis=1), -1.0, 1.0))


def write_samples(folder: Path, samples: tuple[Sample, ...]) -> None:
    """Writes recordings, 16 bits a sample, and their manifest.jsonl."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for sample in samples:
        pcm = render(sample, np.random.default_rng(_SEED))
        soundfile.write(folder / sample.file, pcm, sample.rate_hz, subtype="PCM_16")
        lines.append(
            {
                "audio_filepath": sample.file,
                "duration": round(len(pcm) / sample.rate_hz, 3),
                "text": " ".join(sample.utterances),
            }
        )
    manifest = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "manifest.jsonl").write_text(manifest, encoding="utf-8")


def main(argv: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(__file__).resolve().parent.parent / "samples"
    parser.add_argument("--output", type=Path, default=default)
    options = parser.parse_args(argv)
    write_samples(options.output, SAMPLES)
    write_samples(options.output / "sentences", SENTENCES)
    print(f"{len(SAMPLES) + len(SENTENCES)} recordings in {options.output}")


if __name__ == "__main__":
    main()
