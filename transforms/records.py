"""Records that the batch job passes between its steps: slices of sources, rows with their audio, results."""

from typing import Literal, NamedTuple

from model_runtime.records import Word

AUDIO = "audio"
MANIFEST = "manifest"
PARQUET = "parquet"
KALDI = "kaldi"

Answer = Literal["streaming", "accurate"]
"""Which answer a job gives: what the streaming job says, or what the recogniser says of pieces that are cut for it."""


class Source(NamedTuple):
    """One input file. position: its place in the input's order; kind: audio, manifest, parquet or kaldi."""

    position: int
    path: str
    kind: str


class Slice(NamedTuple):
    """A run of rows that one worker reads by itself.

    source: index of the (first) source; paths: the file, or as many audio files as there are rows (sources `source`,
    `source + 1`, ...); first_row: number of the first row, from 1 (the line of a manifest); rows: how many (blank
    lines are none); offset_bytes: where the first line of a manifest stands; error: why the file as a whole cannot be
    read; it then counts as one row.
    """

    source: int
    kind: str
    paths: list[str]
    first_row: int
    rows: int
    offset_bytes: int = 0
    error: str = ""


class Part(NamedTuple):
    """What one worker does at once and commits as a whole: slices in their order, with so many rows together."""

    number: int
    slices: list[Slice]
    rows: int


class Piece(NamedTuple):
    """Which piece of a recording a row is: number `number` of `pieces`, from start_s to end_s of the row's audio.

    row_key: the key of the row that is cut.
    """

    row_key: str
    number: int
    pieces: int
    start_s: float
    end_s: float


class ClipRow(NamedTuple):
    """One row of the input, its audio not yet decoded. (source, row) is its identity; names and ids may repeat.

    name: what errors call it; source_path: the file it stands in; columns: the row's own columns as a JSON object;
    path: an audio file, where `data` is None; data: the bytes of an audio file, or, with sample_rate_hz above 0, raw
    float32 little-endian samples; start_s, duration_s: the part that is meant, None where the row says nothing;
    error: why the row cannot be used, found while reading; piece: where the row is one piece of what stood there.
    """

    source: int
    row: int
    name: str
    source_path: str
    columns: bytes
    path: str = ""
    data: bytes | None = None
    sample_rate_hz: int = 0
    start_s: float | None = None
    duration_s: float | None = None
    error: str = ""
    piece: Piece | None = None


class KeyedRow(NamedTuple):
    """A row that is to be done. part: number of its part; key: of row_key."""

    part: int
    key: str
    row: ClipRow


class RowKey(NamedTuple):
    """A row's identity in this run, which is its place in the input's order, and its key in all runs.

    piece: number of the piece that it is; -1: it is a row.
    """

    source: int
    row: int
    key: str
    piece: int = -1


class PartRows(NamedTuple):
    """Rows of one part that are finished, in the part file of this name (which may hold others too); "": no rows."""

    part: int
    name: str
    rows: list[RowKey]


class PartDone(NamedTuple):
    """A part whose rows, and no others, are in the part file of this name, in the input's order."""

    number: int
    name: str
    rows: int


class Segment(NamedTuple):
    """One stretch of speech, in ms since the clip's first sample."""

    start_ms: int
    end_ms: int


class ClipResult(NamedTuple):
    """What became of one row: its own columns and the answer, or the reason why there is none.

    pred_text: the finals' texts joined by a space; duration_s: of the audio that was used, None where there was none;
    error and error_class are "" for a good row; error_retriable: the same row may succeed another time;
    sample_rate_hz: of the clip; enhanced: clean audio that is kept in memory, 16-bit little-endian samples;
    enhanced_path: where it was written, relative to the output folder; piece: that of the row.
    """

    source: int
    row: int
    source_path: str
    columns: bytes
    pred_text: str
    words: list[Word]
    segments: list[Segment]
    duration_s: float | None
    model: str
    device: str
    error: str
    error_class: str
    sample_rate_hz: int = 0
    enhanced: bytes | None = None
    enhanced_path: str = ""
    error_retriable: bool = False
    piece: Piece | None = None


def place_of(row: ClipRow | ClipResult) -> tuple[int, int, int]:
    """Gives the identity of a row or a piece in this run: source, row, and number of the piece or -1."""
    return row.source, row.row, row.piece.number if row.piece else -1


class PartRange(NamedTuple):
    """The rows first..last-1 of a part file."""

    name: str
    first: int
    last: int


class Shard(NamedTuple):
    """One of the files of the results: the rows that stand in it."""

    number: int
    ranges: list[PartRange]
