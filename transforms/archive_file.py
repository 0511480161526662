"""The files of an archive: a table per window and kind, which grows by rows and is replaced whole. Knows no Beam."""

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from transforms.atomic_file import atomic_path
from transforms.record_coder import register
from transforms.result_table import WORD

FINALS = "finals"
SESSIONS = "sessions"
MARKER = "archive.json"
"""The file that tells an archive from other folders."""

_TIME = pa.timestamp("ms", "UTC")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_SCHEMAS = {
    FINALS: pa.schema(
        [
            ("result_id", pa.string()),
            ("session", pa.string()),
            ("utterance", pa.int64()),
            ("text", pa.string()),
            ("words", pa.list_(WORD)),
            ("start_ms", pa.int64()),
            ("end_ms", pa.int64()),
            ("ended", _TIME),
            ("model", pa.string()),
            ("device", pa.string()),
            ("shed", pa.list_(pa.string())),
        ]
    ),
    SESSIONS: pa.schema(
        [
            ("audio", pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
            ("result_id", pa.string()),
            ("session", pa.string()),
            ("text", pa.string()),
            ("duration", pa.float64()),
            ("ended", _TIME),
            ("reason", pa.string()),
            ("utterances", pa.int64()),
            ("word_count", pa.int64()),
            ("speech_s", pa.float64()),
            ("missing_chunks", pa.int64()),
            ("duplicates", pa.int64()),
            ("model", pa.string()),
            ("device", pa.string()),
            ("shed", pa.list_(pa.string())),
        ]
    ),
}


class ArchiveRow(NamedTuple):
    """One row of a table. kind: FINALS or SESSIONS; late: it came after its window was closed.

    event_ms: the end of what it is about (Unix ms); columns: a JSON object with the columns of its kind but for
    `ended`, which is event_ms.
    """

    kind: str
    late: bool
    event_ms: int
    columns: bytes


def table_path(folder: Path, kind: str, late: bool, begin_ms: int, end_ms: int) -> Path:
    """Gives the file of a window: the same for every firing and on every replay.

    Args:
        late: the window is that of the stream time at which late rows came.
    """
    begin = (_EPOCH + timedelta(milliseconds=begin_ms)).strftime("%Y%m%dT%H%M%SZ")
    return folder / kind / f"{'late-' * late}{begin}-{(end_ms - begin_ms) // 1000}s.parquet"


def add_rows(folder: Path, path: Path, kind: str, rows: Sequence[ArchiveRow]) -> None:
    """Adds rows to a table, in place of those with the same result_id, and sorts it by time.

    The file appears whole or not at all. What stands in it already stays: an earlier firing, or the part of the window
    that a job wrote before it was stopped. The same rows give the same bytes.
    """
    new = [_columns(row) for row in rows]
    with _alone(folder):
        if not (folder / MARKER).exists():
            with atomic_path(folder / MARKER) as temporary:
                temporary.write_bytes(msgspec.json.encode({"format": "unison-speech archive", "version": 1}))
        old = pq.read_table(path, schema=_SCHEMAS[kind]).to_pylist() if path.exists() else []
        by_id = {row["result_id"]: row for row in [*old, *new]}
        ordered = sorted(by_id.values(), key=lambda row: (row["ended"], row["result_id"]))
        with atomic_path(path) as temporary:
            pq.write_table(pa.Table.from_pylist(ordered, _SCHEMAS[kind]), temporary)


def session_tables(folder: Path) -> list[Path] | None:
    """Gives the tables of an archive that have a row per session, in the order of time; None where it is no archive."""
    return sorted((folder / SESSIONS).glob("*.parquet")) if (folder / MARKER).is_file() else None


def _columns(row: ArchiveRow) -> dict[str, Any]:
    columns: dict[str, Any] = msgspec.json.decode(row.columns)
    return {**columns, "ended": _EPOCH + timedelta(milliseconds=row.event_ms)}


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keeps all other writers out, in this process and in others; the system takes it back from one that dies."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


register(ArchiveRow)
