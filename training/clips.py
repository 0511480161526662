"""Spoken clips in memory and in one file: sample arrays with the text that is said in them."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Clip(NamedTuple):
    """One recording.

    Attributes:
        pcm: int16 [T], 16 kHz.
        text: The words, separated by spaces.
        voice: Who speaks.
    """

    pcm: np.ndarray
    text: str
    voice: str


def save_clips(path: Path, clips: list[Clip]) -> None:
    """Writes clips as one .npz: the samples end to end, their borders, and a JSON list of texts."""
    ends = np.cumsum([len(clip.pcm) for clip in clips])
    labels = json.dumps([[clip.text, clip.voice] for clip in clips])
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, pcm=np.concatenate([clip.pcm for clip in clips]), ends=ends, labels=labels)


def load_clips(path: Path) -> list[Clip]:
    """The clips of a file written by `save_clips`, in the same order."""
    with np.load(path) as file:
        parts = np.split(file["pcm"], file["ends"][:-1])
        labels = json.loads(str(file["labels"]))
    return [Clip(pcm, text, voice) for pcm, (text, voice) in zip(parts, labels, strict=True)]
