"""What happened in a window of event time, added up from what many workers saw of it. Knows no Beam."""

import math
from collections import Counter
from typing import NamedTuple

import msgspec

from transforms.record_coder import register

# Buckets of a histogram grow by 2 %, so that a quantile is off by 1 % at most: the sketch of Masson, Rim and Lee, 2019
# (DDSketch, https://arxiv.org/abs/1908.10693), without its bound on the number of buckets: a day of latencies has 923.
_GROWTH = 1.02


class StatsPart(NamedTuple):
    """What one worker saw, or several together.

    sessions_ended: by reason; audio_us: audio heard; compute_us: time in which it was heard, the reading and writing of
    memories included; latencies: how many finals there were by the bucket of their latency; lag_ms, records_behind: the
    largest, -1 where none was known.
    """

    sessions_opened: int = 0
    sessions_ended: dict[str, int] = {}  # noqa: RUF012  (a NamedTuple default, never changed)
    chunks: int = 0
    audio_us: int = 0
    compute_us: int = 0
    finals: int = 0
    words: int = 0
    dead_letters: int = 0
    latencies: dict[int, int] = {}  # noqa: RUF012  (a NamedTuple default, never changed)
    lag_ms: int = -1
    records_behind: int = -1


class WindowStats(NamedTuple):
    """What happened in the window [begin_ms, end_ms) of event time."""

    begin_ms: int
    end_ms: int
    sums: StatsPart


def add_up(left: StatsPart, right: StatsPart) -> StatsPart:
    """Gives what two saw together; in any order and grouping the same."""
    return StatsPart(
        sessions_opened=left.sessions_opened + right.sessions_opened,
        sessions_ended=_added(left.sessions_ended, right.sessions_ended),
        chunks=left.chunks + right.chunks,
        audio_us=left.audio_us + right.audio_us,
        compute_us=left.compute_us + right.compute_us,
        finals=left.finals + right.finals,
        words=left.words + right.words,
        dead_letters=left.dead_letters + right.dead_letters,
        latencies=_added(left.latencies, right.latencies),
        lag_ms=max(left.lag_ms, right.lag_ms),
        records_behind=max(left.records_behind, right.records_behind),
    )


def latency_bucket(latency_ms: int) -> int:
    """Gives the bucket of a latency."""
    return math.ceil(math.log(max(1, latency_ms)) / math.log(_GROWTH))


def quantile_ms(latencies: dict[int, int], share: float) -> int | None:
    """Gives the latency that so large a share of the finals does not exceed, within 1 %; None where there is none."""
    rank = math.ceil(share * sum(latencies.values()))
    for bucket in sorted(latencies):
        rank -= latencies[bucket]
        if rank <= 0:
            return round(2 * _GROWTH**bucket / (_GROWTH + 1))
    return None


def stats_id(stats: WindowStats) -> str:
    """Gives the window's name, the same on every replay."""
    return f"{stats.begin_ms}-{stats.end_ms}"


def stats_to_json(stats: WindowStats) -> bytes:
    """Gives the wire form (docs/streaming.md)."""
    sums = stats.sums
    fields = {
        "stats_id": stats_id(stats),
        "begin_ms": stats.begin_ms,
        "end_ms": stats.end_ms,
        "sessions_opened": sums.sessions_opened,
        "sessions_ended": dict(sorted(sums.sessions_ended.items())),
        "chunks": sums.chunks,
        "audio_s": sums.audio_us / 1e6,
        "finals": sums.finals,
        "words": sums.words,
        "dead_letters": sums.dead_letters,
        "latency_p50_ms": quantile_ms(sums.latencies, 0.50),
        "latency_p99_ms": quantile_ms(sums.latencies, 0.99),
        "compute_s_per_audio_s": sums.compute_us / sums.audio_us if sums.audio_us else None,
        "lag_ms": sums.lag_ms if sums.lag_ms >= 0 else None,
        "records_behind": sums.records_behind if sums.records_behind >= 0 else None,
    }
    return msgspec.json.encode(fields)


def _added(left: dict, right: dict) -> dict:
    return dict(Counter(left) + Counter(right))


register(StatsPart, WindowStats)
