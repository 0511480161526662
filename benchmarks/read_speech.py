"""The recordings that Whisper is measured on, and how texts are compared with what was said."""

import csv
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from model_runtime.decode import decode_file

RATE_HZ = 16_000
_READ = ("jfk", "84-", "librivox/")
_SPELLINGS = {"mr": "mister"}


class Recording(NamedTuple):
    """Speech with what is said in it: float32 [n], 16 kHz; is_read: a sentence, not a word or two."""

    samples: np.ndarray
    text: str
    is_read: bool


def load_recordings(shared: Path) -> list[Recording]:
    """Gives the mono recordings at 16 kHz of data/speech."""
    folder = shared / "data" / "speech"
    recordings = []
    with (folder / "transcripts.tsv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            audio = decode_file(folder / row["file"])
            if audio.sample_rate_hz == RATE_HZ:
                recordings.append(Recording(audio.samples, row["transcript"], row["file"].startswith(_READ)))
    return recordings


def words(text: str) -> list[str]:
    """Gives the words of a text without case and marks."""
    plain = re.sub(r"[^\w' ]", " ", text.lower()).split()
    return [_SPELLINGS.get(word, word) for word in plain]
