"""Turn: what some chunks, or the end of a session, have brought about."""

from collections import Counter
from typing import NamedTuple

from transforms.dead_letter import DeadLetter
from transforms.lag import Lag
from transforms.result import Result
from transforms.stream_records import EnhancedChunk, SessionAudio, SpokenUtterance
from transforms.window_stats import StatsPart

COUNTS = (
    "audio_us",
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
    "turns_without_denoise",
    "turns_without_partials",
)
"""The names under which a Turn counts."""


class Turn(NamedTuple):
    """What is to be kept, said and counted.

    book: the session's memory from now on (None: nothing to remember); timer_ms: the stream time at which `expire` is
    to be called (None: the timer stays as it is set); counts: what happened, for the job's metrics.

    utterances: what is to be transcribed elsewhere; the first one's audio begins with what has been kept of it in turns
    before, if `continues`; audio: what is to be kept from now on of the utterance under way, behind what there is of it
    already unless that is over (`audio_over`); lag: of the newest chunk, None where none came; heard: what the
    engine has heard, if that is to be kept.
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
    lag: Lag | None
    heard: list[SessionAudio]


def count_turn(turn: Turn, turn_us: int) -> StatsPart:
    """Gives what a turn that took `turn_us` counts for in its window; results and dead letters count on their way."""
    return StatsPart(
        sessions_opened=turn.counts["sessions_opened"],
        chunks=turn.counts["chunks"],
        audio_us=turn.counts["audio_us"],
        compute_us=turn_us,
        lag_ms=-1 if turn.lag is None or turn.lag.ms is None else turn.lag.ms,
        records_behind=-1 if turn.lag is None else turn.lag.records,
    )
