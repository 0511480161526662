"""What is shed at which lag, and when it comes back: the decision is fed with lags."""

import msgspec
import pytest

from transforms.lag import Lag
from transforms.overload import OverloadConfig, decide

CONFIG = OverloadConfig(partials_off_ms=1_000, denoise_off_ms=3_000, recover_share=0.5)
BY_RECORDS = OverloadConfig(partials_off_records=100, denoise_off_records=400, recover_share=0.25)


def course(config: OverloadConfig, lags: list[Lag]) -> list[list[str]]:
    """What is shed at each of these lags, one after the other."""
    shedding: list[str] = []
    decided = []
    for lag in lags:
        shedding = decide(shedding, lag, config)
        decided.append(shedding)
    return decided


def test_partials_go_first_then_denoise_and_both_come_back_by_themselves() -> None:
    lags = [Lag(ms, 0) for ms in (0, 1_000, 1_001, 3_000, 3_001, 2_000, 1_501, 1_500, 501, 500, 0)]
    none, first, both = [], ["partials"], ["partials", "denoise"]
    assert course(CONFIG, lags) == [none, none, first, first, both, both, both, first, first, none, none]


def test_records_behind_count_as_the_time_does() -> None:
    lags = [Lag(None, records) for records in (100, 101, 401, 101, 100, 26, 25)]
    none, first, both = [], ["partials"], ["partials", "denoise"]
    assert course(BY_RECORDS, lags) == [none, first, both, both, first, first, none]


def test_what_either_bound_asks_for_is_shed_until_both_let_go() -> None:
    config = OverloadConfig(partials_off_ms=1_000, partials_off_records=100)
    lags = [Lag(2_000, 0), Lag(100, 60), Lag(600, 0), Lag(100, 50)]
    assert course(config, lags) == [["partials"], ["partials"], ["partials"], []]


def test_a_large_lag_sheds_both_at_once() -> None:
    assert decide([], Lag(86_400_000, 0), CONFIG) == ["partials", "denoise"]


def test_by_default_nothing_is_ever_shed() -> None:
    assert decide([], Lag(10**9, 10**9), OverloadConfig()) == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"denoise_off_ms": 5}, r"partials_off_ms must be 1 to denoise_off_ms \(5\), as partials go first, got 0"),
        ({"partials_off_records": 9, "denoise_off_records": 5}, r"must be 1 to denoise_off_records \(5\).* got 9"),
    ],
)
def test_denoise_is_not_shed_before_partials(fields: dict[str, int], message: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=message):
        msgspec.convert(fields, OverloadConfig)
