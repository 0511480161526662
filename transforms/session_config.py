"""The configuration of sessions: when they end, how their chunks are put in order, and how long keys are remembered."""

from typing import Annotated

import msgspec


class SessionConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a session ends by itself, what it waits for, and what is kept of it after its end."""

    # A session that gets nothing for so many ms of stream time ends as if end_of_stream had come.
    idle_timeout_ms: Annotated[int, msgspec.Meta(ge=100, le=86_400_000)] = 30_000
    # For so many ms after it would have been idle, an ended session's key is remembered: what is late is told from new.
    tombstone_ms: Annotated[int, msgspec.Meta(ge=0, le=86_400_000)] = 600_000
    # A session with so many ms of audio, or of stream time, ends; what follows under its key is a new session. Bounds
    # what one key costs.
    max_session_ms: Annotated[int, msgspec.Meta(ge=1_000, le=604_800_000)] = 14_400_000
    # Most bytes of audio in one record; a larger one is refused before it is decoded. Also the most that waits.
    max_chunk_bytes: Annotated[int, msgspec.Meta(ge=1, le=104_857_600)] = 8_388_608
    # Most chunks of a session that wait for one that they follow; with one more, it is given up. 0: none waits.
    reorder_chunks: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 16
    # A chunk that others wait for is given up after so many ms of stream time.
    reorder_ms: Annotated[int, msgspec.Meta(ge=0, le=600_000)] = 1_000
    # Most ms of silence that stand in for chunks that never came, per gap. 0: what is around a gap is joined.
    max_fill_ms: Annotated[int, msgspec.Meta(ge=0, le=600_000)] = 10_000


class OutputConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which results a job writes besides finals and session ends."""

    # What has been recognised so far, several times a second while somebody speaks.
    partials: bool = True
    # speech_begin and speech_end: the borders of utterances, as soon as they are known.
    segments: bool = True
    # Clean audio into its own topic; needs a recipe with a denoiser.
    enhanced: bool = True
