"""Capture times of a session's samples."""

from transforms.session_anchors import Anchor, event_time_ms, place_chunk

RATE_HZ = 16_000


def place(chunks: list[tuple[int, int]]) -> list[Anchor]:
    anchors: list[Anchor] = []
    for samples, event_ms in chunks:
        anchors = place_chunk(anchors, samples, event_ms, RATE_HZ)
    return anchors


def test_a_sender_without_pauses_has_one_anchor_whatever_its_jitter() -> None:
    anchors = place([(1_600 * i, 1_000_000 + 100 * i + 90 * (i % 3)) for i in range(100)])
    assert anchors == [Anchor(0, 1_000_000)]
    assert event_time_ms(anchors, 24_000, RATE_HZ) == 1_001_500


def test_samples_behind_a_pause_have_the_times_behind_it() -> None:
    anchors = place([(0, 1_000_000), (1_600, 1_000_100), (3_200, 1_060_000)])
    assert [event_time_ms(anchors, samples, RATE_HZ) for samples in (0, 3_199, 3_200, 4_800)] == [
        1_000_000,
        1_000_199,
        1_060_000,
        1_060_100,
    ]


def test_only_the_newest_pauses_are_remembered() -> None:
    anchors = place([(1_600 * i, 1_000_000 + 10_000 * i) for i in range(20)])
    assert anchors == [Anchor(1_600 * i, 1_000_000 + 10_000 * i) for i in range(4, 20)]
    assert event_time_ms(anchors, 1_600 * 3, RATE_HZ) == 1_040_000 - 100
