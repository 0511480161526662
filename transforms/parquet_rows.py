"""Rows of Parquet files: sliced by row group, read a few at a time, so memory follows the rows and not the file."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from model_runtime.audio_sniff import describe_bytes
from model_runtime.errors import AudioError
from transforms.file_access import beside, open_file
from transforms.parquet_audio import RATE_NAMES, AudioCell, read_cell
from transforms.reading_config import ReadingConfig
from transforms.records import PARQUET, ClipRow, Slice, Source

_AUDIO_NAMES = ("audio", "audio_filepath", "audio_filename", "file", "path", "bytes")
# A row group can only be read from its start: more parts share the work and read more twice.
_PARTS_PER_ROW_GROUP = 8
_BYTES_PER_READ = 4 << 20
_ROWS_PER_READ = 64


def split_parquet(source: Source, rows_per_slice: int) -> list[Slice]:
    """Gives the slices of a Parquet file from its footer: whole row groups, or parts of a large one."""
    try:
        with open_file(source.path) as file:
            metadata = pq.read_metadata(file)
    except (pa.ArrowException, OSError) as error:
        return [Slice(source.position, PARQUET, [source.path], 0, 1, 0, _unreadable(source.path, error))]
    slices: list[Slice] = []
    first, rows = 1, 0
    for group in range(metadata.num_row_groups):
        size = metadata.row_group(group).num_rows
        if rows and rows + size > rows_per_slice:
            slices.append(Slice(source.position, PARQUET, [source.path], first, rows))
            first, rows = first + rows, 0
        rows += size
        part = max(rows_per_slice, -(-size // _PARTS_PER_ROW_GROUP))
        while rows > part:
            slices.append(Slice(source.position, PARQUET, [source.path], first, part))
            first, rows = first + part, rows - part
    if rows:
        slices.append(Slice(source.position, PARQUET, [source.path], first, rows))
    return slices


def read_parquet(part: Slice, config: ReadingConfig) -> Iterator[ClipRow]:
    """Gives the rows of a slice, bad ones with their error. Paths are relative to the Parquet file."""
    at, end = part.first_row, part.first_row + part.rows
    try:
        with open_file(part.paths[0]) as source, pq.ParquetFile(source, buffer_size=1 << 20) as file:
            for first, batch in _batches(file, at, end):
                for row in _batch_rows(part, first, batch, config):
                    at = row.row + 1
                    yield row
    except (pa.ArrowException, OSError) as error:
        # Pages after a damaged one cannot be found: every row that is left gets its error.
        reason = _unreadable(part.paths[0], error)
        for number in range(at, end):
            yield _row(part, number)._replace(error=f"row {number}: {reason}")


def _row(part: Slice, number: int) -> ClipRow:
    path = part.paths[0]
    return ClipRow(part.source, number, f"{path} row {number}", path, b"{}")


def _batch_rows(part: Slice, first: int, batch: pa.RecordBatch, config: ReadingConfig) -> Iterator[ClipRow]:
    names = batch.schema.names
    column = config.audio_column or next((name for name in _AUDIO_NAMES if name in names), "")
    cells = batch.column(column) if column in names else None
    for index, columns in enumerate(_other_columns(batch, column)):
        row = _row(part, first + index)
        try:
            if cells is None:
                raise AudioError(f"no audio column {column or ' or '.join(_AUDIO_NAMES)!r} among {names}")
            rate = next((columns[name] for name in RATE_NAMES if columns.get(name)), config.sample_rate_hz)
            cell = read_cell(cells[index], rate, config.max_row_bytes)
        except AudioError as error:
            yield row._replace(columns=_encode(columns), error=f"{row.name}: {error}")
        else:
            yield _with_audio(row, columns, cell)


def _with_audio(row: ClipRow, columns: dict[str, Any], cell: AudioCell) -> ClipRow:
    """A path is kept as the column audio_filepath; an `offset` column selects a part of the audio, as in manifests."""
    if cell.path:
        columns = {**columns, "audio_filepath": cell.path}
    path = beside(row.source_path, cell.path) if cell.data is None else ""
    row = row._replace(columns=_encode(columns), path=path, data=cell.data, sample_rate_hz=cell.sample_rate_hz)
    offset, duration = columns.get("offset"), columns.get("duration")
    if isinstance(offset, (int, float)) and not isinstance(offset, bool):
        row = row._replace(start_s=float(offset), duration_s=duration if isinstance(duration, (int, float)) else None)
    return row


def _batches(file: pq.ParquetFile, begin: int, end: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Gives (number of the first row, batch) for the rows begin..end-1, numbered from 1."""
    at = 1
    for group in range(file.num_row_groups):
        metadata = file.metadata.row_group(group)
        first, at = at, at + metadata.num_rows
        if at <= begin or first >= end or not metadata.num_rows:
            continue
        # The footer's sizes are before dictionary and run-length coding, so the rows can be larger than they say.
        row_bytes = max(1, metadata.total_byte_size // metadata.num_rows)
        size = max(1, min(_ROWS_PER_READ, _BYTES_PER_READ // row_bytes))
        for batch in file.iter_batches(batch_size=size, row_groups=[group], use_threads=False):
            low, high = max(begin - first, 0), min(end - first, batch.num_rows)
            if high > low:
                yield first + low, batch.slice(low, high - low)
            first += batch.num_rows
            if first >= end:
                break


def _other_columns(batch: pa.RecordBatch, audio: str) -> list[dict[str, Any]]:
    others = [name for name in batch.schema.names if name != audio]
    rows: list[dict[str, Any]] = [{} for _ in range(batch.num_rows)]
    for name in others:
        column = batch.column(name)
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
            column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
        for row, value in zip(rows, column.to_pylist(), strict=True):
            row[name] = value
    return rows


def _encode(columns: dict[str, Any]) -> bytes:
    # What JSON does not know becomes text (dates, decimals) or base64 (bytes).
    return msgspec.json.encode(columns, enc_hook=str)


def _unreadable(path: str, error: Exception) -> str:
    try:
        with open_file(path) as file:
            head = file.read(4096)
    except OSError as reason:
        return f"{path}: cannot be read: {reason.strerror or reason}"
    return f"{path}: is no readable Parquet file: it is {describe_bytes(head)} ({' '.join(str(error).split())})"
