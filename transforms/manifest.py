"""NeMo manifests: JSON lines (or one JSON array) of `audio_filepath, offset, duration` and any other keys."""

from collections.abc import Iterator
from typing import Any

import msgspec

from model_runtime.audio_sniff import describe_bytes
from transforms.file_access import beside, open_file
from transforms.records import MANIFEST, ClipRow, Slice, Source
from transforms.text_lines import LineRun, read_lines, split_lines

_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"
_PATH_KEYS = ("audio_filepath", "audio_filename")
_HEAD_BYTES = 4096


def split_manifest(source: Source, rows_per_slice: int) -> list[Slice]:
    """Gives the slices of a manifest. Reads it once, and holds one line at a time.

    A JSON array is one slice, as it can only be read whole.
    """
    try:
        with open_file(source.path) as file:
            head = file.read(_HEAD_BYTES)
        start = head.removeprefix(_BOM).lstrip(_BLANK)
        if start.startswith(b"["):
            return [_array_slice(source)]
        if start and not start.startswith(b"{") and not describe_bytes(head).startswith(("of an unknown", "text")):
            return [_refused(source, f"{source.path}: is no manifest of JSON lines: it is {describe_bytes(head)}")]
        return [
            Slice(source.position, MANIFEST, [source.path], run.first, run.rows, run.offset_bytes)
            for run in split_lines(source.path, rows_per_slice)
        ]
    except OSError as error:
        return [_refused(source, f"{source.path}: cannot be read: {error.strerror or error}")]


def read_manifest(part: Slice) -> Iterator[ClipRow]:
    """Gives the rows of a slice, bad ones with their error. Paths are relative to the manifest."""
    path = part.paths[0]
    if part.offset_bytes < 0:
        for number, item in enumerate(_read_array(path), 1):
            yield _row(part.source, path, number, f"{path} item {number}", item)
        return
    for number, text in read_lines(path, LineRun(part.first_row, part.rows, part.offset_bytes)):
        if text is None:
            yield _bad_row(part.source, path, number, f"{path} line {number}: has gone while the job ran")
        else:
            yield _line_row(part.source, path, number, text)


def _array_slice(source: Source) -> Slice:
    try:
        items = _read_array(source.path)
    except ValueError as error:
        return _refused(source, f"{source.path}: neither JSON lines nor one JSON array: {error}")
    return Slice(source.position, MANIFEST, [source.path], 1, len(items), -1)


def _read_array(path: str) -> list[Any]:
    with open_file(path) as file:
        return msgspec.json.decode(file.read().removeprefix(_BOM), type=list)


def _refused(source: Source, error: str) -> Slice:
    return Slice(source.position, MANIFEST, [source.path], 0, 1, 0, error)


def _line_row(source: int, path: str, number: int, text: bytes) -> ClipRow:
    name = f"{path} line {number}"
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        return _bad_row(source, path, number, f"{name}: is not UTF-8 (byte 0x{text[error.start]:02x} at {error.start})")
    try:
        return _row(source, path, number, name, msgspec.json.decode(text))
    except msgspec.DecodeError as error:
        return _bad_row(source, path, number, f"{name}: is not JSON: {error}")


def _bad_row(source: int, path: str, number: int, error: str) -> ClipRow:
    return ClipRow(source, number, "", path, b"{}", error=error)


def _row(source: int, path: str, number: int, name: str, item: Any) -> ClipRow:
    if not isinstance(item, dict):
        return _bad_row(source, path, number, f"{name}: must be a JSON object, got {type(item).__name__}")
    row = ClipRow(source, number, name, path, msgspec.json.encode(item))
    key = next((key for key in _PATH_KEYS if key in item), None)
    if key is None:
        return row._replace(error=f"{name}: has no audio_filepath")
    audio = item[key]
    if not isinstance(audio, str) or not audio:
        return row._replace(error=f"{name}: {key} must be a path, got {audio!r}")
    for field in ("offset", "duration"):
        value = item.get(field)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0):
            return row._replace(error=f"{name}: {field} must be a number of seconds >= 0 or null, got {value!r}")
    # NeMo's meaning: a duration of 0 is that of a file whose length nobody measured.
    return row._replace(
        path=beside(path, audio),
        start_s=_seconds(item.get("offset")),
        duration_s=_seconds(item.get("duration") or None),
    )


def _seconds(value: float | None) -> float | None:
    return None if value is None else float(value)
