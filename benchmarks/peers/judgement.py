"""Compares what was said with what must be said, and takes how late it was."""

from typing import NamedTuple

import msgspec

from benchmarks.peers.expected import CHUNK_MS, RATE_HZ
from benchmarks.peers.play import Play

_WRONG_SHOWN = 3


class Said(msgspec.Struct):
    """The fields of a result that count here."""

    session: str
    type: str
    utterance: int = -1
    revision: int = 0
    text: str = ""
    start_ms: int = 0
    end_ms: int = 0


class Outcome(NamedTuple):
    """What came of some sessions.

    latencies_ms: of partials and finals, from the capture of the last sample that they needed to the broker's stamp;
    end_latencies_ms: the same for what the end of each stream has brought (its last final); wrong: how many results
    were missing, not as they must be, or not to be; examples: some of them; behind: sessions that had not ended in
    time; last_ms: the broker's stamp of the newest result.
    """

    latencies_ms: list[float]
    end_latencies_ms: list[float]
    wrong: int
    examples: list[str]
    behind: int
    last_ms: float


def judge(plays: list[Play], capture_ms: float, said: list[tuple[Said, float]]) -> Outcome:
    """Compares what was said with what must be said of sessions that were captured from `capture_ms` on."""
    latencies: list[float] = []
    ends: dict[str, float] = {}
    by_session = {play.session: play for play in plays}
    missing = {play.session: dict(play.script.results) for play in plays}
    wrong, ended = [], set()
    for result, stamp_ms in said:
        play = by_session[result.session]
        if result.type == "session_end":
            ended.add(result.session)
            continue
        expected = missing[result.session].pop((result.type, result.utterance, result.revision), None)
        if expected is None or (result.text, result.start_ms, result.end_ms) != expected[:3]:
            wrong.append(f"{result} where {expected} was to come")
            continue
        # A last chunk may be shorter than the others; its true length counts.
        captured_ms = min((expected.chunk + 1) * CHUNK_MS, 1000 * len(play.script.audio) / RATE_HZ)
        late_ms = stamp_ms - (capture_ms + play.offset_ms + captured_ms)
        latencies.append(late_ms)
        if expected.chunk == play.script.chunks() - 1:
            ends[result.session] = late_ms
    wrong += [f"{name} of {session} never came" for session in ended for name in missing[session]]
    last_ms = max((stamp_ms for _, stamp_ms in said), default=capture_ms)
    return Outcome(latencies, list(ends.values()), len(wrong), wrong[:_WRONG_SHOWN], len(plays) - len(ended), last_ms)
