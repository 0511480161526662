"""How the rows of the batch job are read."""

from typing import Annotated

from msgspec import Meta, Struct


class ReadingConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How rows are read."""

    rows_per_slice: Annotated[int, Meta(ge=1, le=100_000)] = 16  # rows that a worker takes at once; fewer spread better
    audio_column: str = ""  # Parquet column of the audio; "": the first of audio, audio_filepath, file, path, bytes
    max_row_bytes: Annotated[int, Meta(ge=1_000)] = 200_000_000  # bytes of audio in a Parquet row; a larger one is bad
    sample_rate_hz: Annotated[int, Meta(ge=0, le=192_000)] = 0  # Hz of lists of samples without a rate; 0: refuse them
