"""The time of a partition, reckoned without a broker."""

import pytest

from transforms.kafka_clock import FIRST_EVENT_MS, EventTime, JointWatermark, PartitionClock, event_time

NOW = 1_790_000_000_000


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (NOW - 5, EventTime(NOW - 5, False)),
        (FIRST_EVENT_MS, EventTime(FIRST_EVENT_MS, False)),
        (FIRST_EVENT_MS - 1, EventTime(NOW, True)),
        (0, EventTime(NOW, True)),
        (NOW // 1000, EventTime(NOW, True)),
        (NOW + 60_000, EventTime(NOW + 60_000, False)),
        (NOW + 60_001, EventTime(NOW, True)),
        (-1, EventTime(NOW, True)),
        (None, EventTime(NOW, True)),
        ((NOW - 5) * 1000, EventTime(NOW, True)),
        (2**63 - 1, EventTime(NOW, True)),
    ],
    ids=[
        "past",
        "far past",
        "too far past",
        "epoch",
        "seconds",
        "a little ahead",
        "too far ahead",
        "minus one",
        "none",
        "microseconds",
        "largest",
    ],
)
def test_an_unusable_timestamp_is_replaced_by_the_time_of_reading(timestamp: int | None, expected: EventTime) -> None:
    assert event_time(timestamp, NOW, max_future_ms=60_000) == expected


@pytest.fixture
def clock() -> PartitionClock:
    clock = PartitionClock(allowed_disorder_ms=2_000, idle_partition_ms=1_000)
    clock.begin_round(0)
    return clock


def test_stream_time_never_falls_and_never_lies_before_the_event(clock: PartitionClock) -> None:
    assert [clock.stamp(ms) for ms in (10_000, 9_000, 9_500, 10_001)] == [10_000, 10_000, 10_000, 10_001]


def test_records_of_two_rounds_never_share_a_time(clock: PartitionClock) -> None:
    clock.stamp(10_000)
    clock.end_round(NOW, got_records=True, caught_up=True)
    clock.begin_round(clock.time_ms)
    assert clock.stamp(10_000) == 10_001


def test_the_watermark_is_the_newest_time_minus_the_disorder(clock: PartitionClock) -> None:
    clock.stamp(10_000)
    assert clock.end_round(NOW, got_records=True, caught_up=True) == 8_000


def test_an_idle_partition_that_is_read_to_its_end_follows_the_clock(clock: PartitionClock) -> None:
    clock.stamp(NOW)
    assert clock.end_round(NOW, got_records=False, caught_up=True) == NOW - 2_000
    assert clock.end_round(NOW + 999, got_records=False, caught_up=True) == NOW - 2_000
    assert clock.end_round(NOW + 1_000, got_records=False, caught_up=True) == NOW - 1_000


@pytest.mark.parametrize("late_ms", [300, 38_500, 119_900])
def test_senders_that_are_behind_have_as_long_again_for_their_next_record(clock: PartitionClock, late_ms: int) -> None:
    for now in (NOW, NOW + 500_000):
        clock.stamp(now - late_ms)
        clock.end_round(now, got_records=True, caught_up=True)
        clock.end_round(now + 100, got_records=False, caught_up=True)
        jump_ms = now + 100 + 1_000 + late_ms + 100
        assert clock.end_round(jump_ms - 1, got_records=False, caught_up=True) == now - late_ms - 2_000
        assert clock.end_round(jump_ms, got_records=False, caught_up=True) == jump_ms - 2_000


def test_another_process_gives_them_as_long(clock: PartitionClock) -> None:
    clock.begin_round(NOW - 40_001)
    clock.end_round(NOW, got_records=False, caught_up=True)
    assert clock.end_round(NOW + 40_999, got_records=False, caught_up=True) == NOW - 42_000
    assert clock.end_round(NOW + 41_000, got_records=False, caught_up=True) == NOW + 39_000


def test_what_is_older_than_senders_keep_it_is_a_recording_and_not_waited_for(clock: PartitionClock) -> None:
    clock.stamp(NOW - 120_001)
    assert clock.end_round(NOW, got_records=False, caught_up=True) == NOW - 122_001
    assert clock.end_round(NOW + 1_000, got_records=False, caught_up=True) == NOW - 1_000


def test_a_partition_that_never_had_a_record_follows_the_clock_as_well(clock: PartitionClock) -> None:
    clock.end_round(NOW, got_records=False, caught_up=True)
    assert clock.end_round(NOW + 1_000, got_records=False, caught_up=True) == NOW - 1_000


def test_a_partition_that_is_behind_holds_the_watermark(clock: PartitionClock) -> None:
    clock.stamp(NOW - 300_000)
    marks = [clock.end_round(NOW + 500 * i, got_records=False, caught_up=False) for i in range(10)]
    assert set(marks) == {NOW - 302_000}


def test_after_an_outage_senders_have_as_long_again_to_come_back(clock: PartitionClock) -> None:
    clock.stamp(NOW - 1_000)
    for away_ms in (0, 20_000):
        clock.end_round(NOW + away_ms, got_records=False, caught_up=False)
    held = [clock.end_round(NOW + back_ms, got_records=False, caught_up=True) for back_ms in (40_000, 81_999)]
    assert held == [NOW - 3_000, NOW - 3_000]
    assert clock.end_round(NOW + 82_000, got_records=False, caught_up=True) == NOW + 80_000
    assert clock.end_round(NOW + 82_100, got_records=False, caught_up=True) == NOW + 80_100


def test_also_after_an_outage_that_was_longer_than_senders_usually_keep_anything(clock: PartitionClock) -> None:
    clock.stamp(NOW)
    clock.end_round(NOW, got_records=False, caught_up=False)
    clock.end_round(NOW + 300_000, got_records=False, caught_up=True)
    assert clock.end_round(NOW + 600_999, got_records=False, caught_up=True) == NOW - 2_000
    assert clock.end_round(NOW + 601_000, got_records=False, caught_up=True) == NOW + 599_000


def test_a_record_that_is_not_late_ends_an_outage(clock: PartitionClock) -> None:
    clock.end_round(NOW, got_records=False, caught_up=False)
    clock.stamp(NOW + 40_100)
    clock.end_round(NOW + 40_000, got_records=True, caught_up=True)
    clock.end_round(NOW + 40_100, got_records=False, caught_up=True)
    assert clock.end_round(NOW + 41_100, got_records=False, caught_up=True) == NOW + 39_100


def test_a_sender_with_a_slow_clock_is_not_behind_the_watermark(clock: PartitionClock) -> None:
    for now in (NOW, NOW + 1_000):
        watermark = clock.end_round(now, got_records=False, caught_up=True)
    clock.begin_round(clock.time_ms)
    assert clock.stamp(NOW - 600_000) > watermark


def test_time_goes_on_in_another_process_where_it_stood() -> None:
    clock = PartitionClock(allowed_disorder_ms=2_000, idle_partition_ms=1_000)
    clock.begin_round(50_000)
    assert clock.stamp(1) == 50_001


def test_the_slowest_partition_holds_the_watermark_of_all_until_it_is_read_elsewhere() -> None:
    joint = JointWatermark(forget_after_s=60)
    assert joint.report("a", 500, now_s=0) == 500
    assert joint.report("b", 300, now_s=1) == 300
    assert joint.report("a", 900, now_s=2) == 300
    assert joint.report("b", 950, now_s=3) == 900
    assert joint.report("b", 2_000, now_s=62) == 900
    assert joint.report("b", 2_100, now_s=63) == 2_100


def test_a_partition_that_ends_holds_nothing() -> None:
    joint = JointWatermark(forget_after_s=60)
    joint.report("a", 500, now_s=0)
    joint.leave("a")
    assert joint.report("b", 900, now_s=1) == 900
