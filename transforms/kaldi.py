"""Kaldi's data folders: `wav.scp`, and where they are there, `segments` and `text` beside it."""

import os
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from transforms.file_access import beside
from transforms.records import KALDI, ClipRow, Slice, Source
from transforms.text_lines import LineRun, read_lines, split_lines


def split_kaldi(source: Source, rows_per_slice: int) -> list[Slice]:
    """Gives the slices of a wav.scp: runs of its own lines, or of those of `segments`."""
    try:
        return [
            Slice(source.position, KALDI, [source.path], run.first, run.rows, run.offset_bytes)
            for run in split_lines(_rows_file(source.path), rows_per_slice)
        ]
    except OSError as error:
        reason = f"{error.filename}: cannot be read: {error.strerror or error}"
        return [Slice(source.position, KALDI, [source.path], 0, 1, 0, reason)]


def read_kaldi(part: Slice) -> Iterator[ClipRow]:
    """Gives the rows of a slice, bad ones with their error. Paths are relative to the wav.scp."""
    scp = part.paths[0]
    rows_file = _rows_file(scp)
    for number, text in read_lines(rows_file, LineRun(part.first_row, part.rows, part.offset_bytes)):
        name = f"{rows_file} line {number}"
        row = ClipRow(part.source, number, name, rows_file, b"{}")
        if text is None:
            yield row._replace(error=f"{name}: has gone while the job ran")
            continue
        try:
            fields = text.decode("utf-8").split(maxsplit=1 if rows_file == scp else -1)
        except UnicodeDecodeError as error:
            yield row._replace(error=f"{name}: is not UTF-8 (byte 0x{text[error.start]:02x} at {error.start})")
            continue
        yield _whole_row(row, scp, fields) if rows_file == scp else _segment_row(row, scp, fields)


def _rows_file(scp: str) -> str:
    segments = os.path.join(os.path.dirname(scp), "segments")
    return segments if os.path.isfile(segments) else scp


def _whole_row(row: ClipRow, scp: str, fields: list[str]) -> ClipRow:
    if len(fields) != 2:
        return row._replace(error=f"{row.name}: must be an utterance and a path, got {' '.join(fields)!r}")
    return _row(row, scp, fields[0], fields[1].strip(), {})


def _segment_row(row: ClipRow, scp: str, fields: list[str]) -> ClipRow:
    if len(fields) != 4:
        return row._replace(error=f"{row.name}: must be utterance, recording, start, end; got {' '.join(fields)!r}")
    utterance, recording, *times = fields
    path = _table(scp, _state(scp)).get(recording)
    if path is None:
        return row._replace(error=f"{row.name}: {scp} has no recording {recording!r}")
    try:
        start_s, end_s = (float(time) for time in times)
    except ValueError:
        start_s, end_s = -1.0, -1.0
    # Kaldi's meaning: an end of -1 is that of the recording.
    if not (0 <= start_s < float("inf") and (end_s == -1 or start_s < end_s < float("inf"))):
        return row._replace(error=f"{row.name}: start and end must be seconds, 0 <= start < end, got {' '.join(times)}")
    duration_s = None if end_s == -1 else round(end_s - start_s, 6)
    columns = {"recording": recording, "offset": start_s, "duration": duration_s}
    return _row(row, scp, utterance, path, columns)._replace(start_s=start_s, duration_s=duration_s)


def _row(row: ClipRow, scp: str, utterance: str, path: str, columns: dict[str, Any]) -> ClipRow:
    columns = {"utterance": utterance, "audio_filepath": path, **columns}
    text = os.path.join(os.path.dirname(scp), "text")
    if os.path.isfile(text):
        columns["text"] = _table(text, _state(text)).get(utterance, "")
    row = row._replace(columns=msgspec.json.encode(columns))
    if path.endswith("|"):
        return row._replace(error=f"{row.name}: is a command, which is never run: {path!r}; write its audio to a file")
    return row._replace(path=beside(scp, path))


def _state(path: str) -> tuple[int, int]:
    state = os.stat(path)
    return state.st_size, state.st_mtime_ns


@lru_cache(maxsize=4)
def _table(path: str, _: tuple[int, int]) -> dict[str, str]:
    """The lines of a file as first field -> the rest; the state of the file makes a changed one another."""
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        pairs = (line.strip().split(maxsplit=1) for line in file)
        return {pair[0]: pair[1] if len(pair) > 1 else "" for pair in pairs if pair}
