"""The rows of all sources of a bounded job, cut into slices that workers read by themselves."""

import os
from collections.abc import Iterator, Sequence

import msgspec

from transforms.kaldi import read_kaldi, split_kaldi
from transforms.manifest import read_manifest, split_manifest
from transforms.parquet_rows import read_parquet, split_parquet
from transforms.reading_config import ReadingConfig
from transforms.records import AUDIO, KALDI, MANIFEST, PARQUET, ClipRow, Slice, Source

# A file above this is a slice of its own: several recordings of hours shall not wait for one worker.
_LARGE_BYTES = 8 << 20


def split_sources(sources: Sequence[Source], rows_per_slice: int) -> list[Slice]:
    """Gives the slices of all sources in their order. Reads footers and line ends only, never audio."""
    slices: list[Slice] = []
    for source in sources:
        if not _is_text(source.path):
            # Neither JSON nor Beam's coders can carry such a name.
            shown = os.fsencode(source.path).decode("utf-8", "backslashreplace")
            slices.append(Slice(source.position, source.kind, [shown], 0, 1, 0, f"{shown}: the file name is not UTF-8"))
        elif source.kind == MANIFEST:
            slices += split_manifest(source, rows_per_slice)
        elif source.kind == PARQUET:
            slices += split_parquet(source, rows_per_slice)
        elif source.kind == KALDI:
            slices += split_kaldi(source, rows_per_slice)
        else:
            _add_audio_file(slices, source, rows_per_slice)
    return slices


def read_slice(part: Slice, config: ReadingConfig) -> Iterator[ClipRow]:
    """Gives the rows of a slice in order; a file that cannot be read as a whole is one row with an error."""
    path = part.paths[0]
    if part.error:
        yield ClipRow(part.source, 0, path, path, b"{}", error=part.error)
    elif part.kind == MANIFEST:
        yield from read_manifest(part)
    elif part.kind == PARQUET:
        yield from read_parquet(part, config)
    elif part.kind == KALDI:
        yield from read_kaldi(part)
    else:
        for index, audio in enumerate(part.paths):
            columns = msgspec.json.encode({"audio_filepath": audio})
            yield ClipRow(part.source + index, 1, audio, audio, columns, path=audio)


def _is_text(path: str) -> bool:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _is_large(path: str) -> bool:
    try:
        return os.path.getsize(path) >= _LARGE_BYTES
    except OSError:
        # Not there, or the URL of a file system that is not asked for each file.
        return False


def _add_audio_file(slices: list[Slice], source: Source, rows_per_slice: int) -> None:
    """Adds the file to the last slice while that one has room, so that small files travel together, and large alone."""
    last = slices[-1] if slices else None
    has_room = last is not None and last.kind == AUDIO and not last.error and last.rows < rows_per_slice
    if last is not None and has_room and not _is_large(source.path) and not _is_large(last.paths[-1]):
        slices[-1] = last._replace(paths=[*last.paths, source.path], rows=last.rows + 1)
    else:
        slices.append(Slice(source.position, AUDIO, [source.path], 1, 1))
