"""The configuration of the streaming job's archive."""

from typing import Annotated, Literal

import msgspec


class ArchiveConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Finals and sessions in Parquet files by windows of event time, which the batch job reads as its input."""

    # Folder that all workers reach; empty: nothing is archived.
    folder: str = ""
    # Length of a window in ms: each has a file of finals and one of sessions.
    window_ms: Annotated[int, msgspec.Meta(ge=1_000, le=86_400_000)] = 600_000
    # For so many ms of stream time after its end, a window's files still take up what belongs to it.
    allowed_lateness_ms: Annotated[int, msgspec.Meta(ge=0, le=604_800_000)] = 600_000
    # A window's files are written this often (whole seconds of the clock) before its end; 0: only at its end.
    early_firing_s: Annotated[int, msgspec.Meta(ge=0, le=86_400)] = 0
    # What becomes of rows that come even later: file (one of their own), or drop (they are only counted).
    late: Literal["file", "drop"] = "file"
    # What is kept of each session's audio: flac or wav (16 bits, at its own rate, a file beside the tables), or none.
    audio: Literal["flac", "wav", "none"] = "flac"
