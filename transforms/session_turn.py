"""Turn: what some chunks, or the end of a session, have brought about."""

from collections import Counter
from typing import NamedTuple

from transforms.dead_letter import DeadLetter
from transforms.result import Result
from transforms.stream_records import EnhancedChunk, SpokenUtterance

COUNTS = (
    "chunks",
    "chunks_duplicate",
    "chunks_early",
    "chunks_late",
    "chunks_missing",
    "chunks_refused",
    "chunks_without_audio",
    "frames_cut_off",
    "sessions_ended",
    "sessions_opened",
    "settings_refused",
    "states_refused",
)
"""The names under which a Turn counts."""


class Turn(NamedTuple):
    """What is to be kept, said and counted.

    book: the session's memory from now on (None: nothing to remember); timer_ms: the stream time at which `expire` is
    to be called (None: the timer stays as it is set); counts: what happened, for the job's metrics.

    utterances: what is to be transcribed elsewhere; the first one's audio begins with what has been kept of it in turns
    before, if `continues`; audio: what is to be kept from now on of the utterance under way, behind what there is of it
    already unless that is over (`audio_over`).
    """

    book: bytes | None
    timer_ms: int | None
    results: list[Result]
    enhanced: list[EnhancedChunk]
    dead_letters: list[DeadLetter]
    counts: Counter[str]
    utterances: list[SpokenUtterance]
    continues: bool
    audio: bytes
    audio_over: bool
