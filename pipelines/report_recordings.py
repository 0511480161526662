"""The recordings that a report shows: their sound before and after, as pictures and to listen to."""

import base64
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import soundfile

from model_runtime.audio import Audio
from model_runtime.decode import decode_file
from model_runtime.errors import AudioError
from pipelines.spectrogram import spectrogram_db, to_png
from transforms.file_access import beside, read_audio

Row = dict[str, Any]


class Sound(NamedTuple):
    """One version of a recording. picture: a data URL of the spectrogram; audio: one of FLAC, which is
    written ten times as fast as MP3.
    """

    title: str
    picture: str
    audio: str


class Recording(NamedTuple):
    """A recording as it is shown: its row, the seconds of it that are, and its sound before and after."""

    row: Row
    shown_s: float
    sounds: list[Sound]


def pick_rows(lines: Iterable[bytes], count: int, good_rows: int) -> list[Row]:
    """Gives up to `count` good rows, spread over all `good_rows`; rows with speech come first."""
    picked: list[Row] = []
    silent: list[Row] = []
    seen = 0
    for line in lines:
        if len(picked) == count:
            break
        # So many rows must still be left for those that are still wanted.
        due = seen >= len(picked) * good_rows // max(1, count)
        error = msgspec.json.decode(line, type=_Error).error
        seen += not error
        if error or not (due or len(silent) < count):
            continue
        row: Row = msgspec.json.decode(line)
        if due and (row["words"] or row["segments"]):
            picked.append(row)
        elif len(silent) < count:
            silent.append(row)
    return (picked + silent)[:count]


class _Error(msgspec.Struct):
    error: str


def recordings(rows: Iterable[Row], output: Path, max_s: float) -> Iterator[Recording]:
    """Gives the recordings of rows whose audio lies in files; others are left out.

    Args:
        output: the job's output folder, to which paths of clean audio are relative.
        max_s: seconds of a recording that are shown.
    """
    for row in rows:
        try:
            before = _part(row, max_s)
            enhanced = row.get("enhanced_filepath")
            after = decode_file(output / enhanced, 0.0, max_s) if enhanced else None
        except AudioError:
            continue
        if not len(before.samples):
            continue
        sounds = [("before", before)] + ([("after", after)] if after is not None else [])
        levels = [spectrogram_db(audio.samples, audio.sample_rate_hz) for _, audio in sounds]
        # One scale for both, so that what has gone is seen to have gone.
        loudest_db = float(levels[0].max())
        yield Recording(
            row,
            before.duration_s,
            [
                Sound(title, _data_url("image/png", to_png(level, loudest_db)), _flac(audio))
                for (title, audio), level in zip(sounds, levels, strict=True)
            ],
        )


def _part(row: Row, max_s: float) -> Audio:
    path = row.get("audio_filepath") or row.get("audio_filename")
    if not path:
        raise AudioError("the audio lies in no file")
    offset, duration = row.get("offset"), row.get("duration") or max_s
    return next(read_audio(beside(row["source_file"], str(path)), float(offset or 0), min(max_s, float(duration))))


def _flac(audio: Audio) -> str:
    file = io.BytesIO()
    soundfile.write(file, np.clip(audio.samples, -1, 1), audio.sample_rate_hz, format="FLAC", subtype="PCM_16")
    return _data_url("audio/flac", file.getvalue())


def _data_url(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
