"""Figures of a window: adding up, quantiles, and their wire form."""

import json
from collections import Counter
from functools import reduce
from random import Random

import numpy as np
import pytest

from transforms.window_stats import StatsPart, WindowStats, add_up, latency_bucket, quantile_ms, stats_to_json

PARTS = [
    StatsPart(sessions_opened=1, chunks=3, audio_us=300_000, compute_us=40_000, lag_ms=80, records_behind=2),
    StatsPart(finals=1, words=2, latencies={latency_bucket(100): 1}),
    StatsPart(finals=1, words=1, latencies={latency_bucket(100): 1, latency_bucket(2_000): 1}),
    StatsPart(sessions_ended={"idle": 1}),
    StatsPart(sessions_ended={"idle": 1, "length": 1}, dead_letters=4),
    StatsPart(chunks=1, audio_us=100_000, compute_us=10_000, lag_ms=300, records_behind=0),
]
TOGETHER = StatsPart(
    sessions_opened=1,
    sessions_ended={"idle": 2, "length": 1},
    chunks=4,
    audio_us=400_000,
    compute_us=50_000,
    finals=2,
    words=3,
    dead_letters=4,
    latencies={latency_bucket(100): 2, latency_bucket(2_000): 1},
    lag_ms=300,
    records_behind=2,
)


def test_parts_add_up_to_the_same_in_any_order_and_grouping() -> None:
    assert reduce(add_up, PARTS) == TOGETHER
    shuffled = PARTS.copy()
    Random(3).shuffle(shuffled)
    assert add_up(reduce(add_up, shuffled[:2]), reduce(add_up, shuffled[2:], StatsPart())) == TOGETHER


@pytest.mark.parametrize("share", [0.5, 0.99, 1.0])
def test_quantiles_are_those_of_all_latencies_within_one_percent(share: float) -> None:
    latencies = np.random.default_rng(5).lognormal(6, 1.5, 1_000).astype(int) + 1
    exact = np.sort(latencies)[int(np.ceil(share * 1_000)) - 1]
    # Half a ms of rounding besides.
    found = quantile_ms(dict(Counter(latency_bucket(int(ms)) for ms in latencies)), share)
    assert found is not None and abs(found - exact) <= 0.01 * exact + 0.5


def test_the_figures_of_a_window_are_one_json_object() -> None:
    assert json.loads(stats_to_json(WindowStats(60_000, 120_000, TOGETHER))) == {
        "stats_id": "60000-120000",
        "begin_ms": 60_000,
        "end_ms": 120_000,
        "sessions_opened": 1,
        "sessions_ended": {"idle": 2, "length": 1},
        "chunks": 4,
        "audio_s": 0.4,
        "finals": 2,
        "words": 3,
        "dead_letters": 4,
        "latency_p50_ms": 100,
        "latency_p99_ms": quantile_ms(TOGETHER.latencies, 0.99),
        "compute_s_per_audio_s": 0.125,
        "lag_ms": 300,
        "records_behind": 2,
    }


def test_what_was_not_there_is_null() -> None:
    fields = json.loads(stats_to_json(WindowStats(0, 1_000, StatsPart(dead_letters=1))))
    nulls = {name for name, value in fields.items() if value is None}
    assert nulls == {"latency_p50_ms", "latency_p99_ms", "compute_s_per_audio_s", "lag_ms", "records_behind"}
