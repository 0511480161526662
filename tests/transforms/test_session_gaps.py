"""Chunks out of order, chunks that never come: what a session waits for, and what stands in for what is missing."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transforms.result import Gap, Result
from transforms.session_book import decode_book
from transforms.session_config import OutputConfig, SessionConfig
from transforms.session_logic import SessionLogic
from transforms.stream_records import Chunk

CONFIG = SessionConfig(idle_timeout_ms=5_000, reorder_chunks=4, reorder_ms=1_000, max_fill_ms=500)


class Said(NamedTuple):
    results: list[Result]
    clean: bytes
    counts: Counter[str]
    refused: list[tuple[int, str]]
    book: bytes | None

    def finals(self) -> list[str]:
        return [result.text for result in self.results if result.type == "final"]

    def end(self) -> Result:
        (end,) = [result for result in self.results if result.type == "session_end"]
        return end


@pytest.fixture
def logic(stand_in: object) -> SessionLogic:
    return SessionLogic(stand_in, CONFIG, OutputConfig(enhanced=True))


@pytest.fixture
def chunks(make_chunk: Callable[..., Chunk], noise: np.ndarray) -> list[Chunk]:
    """One second of noise in ten chunks, the last of which ends the stream."""
    return [make_chunk(i, part, end_of_stream=i == 9) for i, part in enumerate(np.split(noise, 10))]


def play(logic: SessionLogic, groups: Sequence[Sequence[Chunk]], book: bytes | None = None) -> Said:
    """Plays groups of chunks, each at once."""
    results, clean, counts, refused = [], b"", Counter[str](), []
    for group in groups:
        turn = logic.advance(book, group)
        book = turn.book
        results += turn.results
        clean += b"".join(chunk.payload for chunk in turn.enhanced)
        counts += turn.counts
        refused += [(letter.offset, letter.message) for letter in turn.dead_letters]
    return Said(results, clean, counts, refused, book)


def essence(said: Said) -> list[tuple[object, ...]]:
    """What was said, without how much had been taken in when it was."""
    return [result._replace(audio_ms=0, captured_ms=0, duplicates=0) for result in said.results]


@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_order_within_the_bounds_with_duplicates_says_what_the_ordered_session_says(
    logic: SessionLogic, chunks: list[Chunk], data: st.DataObject
) -> None:
    delays = data.draw(st.lists(st.integers(0, 4), min_size=10, max_size=10))
    doubled = data.draw(st.lists(st.integers(0, 9), max_size=5))
    arrivals = sorted(enumerate(chunks), key=lambda pair: (pair[0] + delays[pair[0]], pair[0]))
    came = [chunk for _, chunk in arrivals]
    for index in doubled:
        came.insert(data.draw(st.integers(came.index(chunks[index]) + 1, len(came))), chunks[index])
    # What comes later has a later place in the topic, and the first record names the session.
    came = [chunk._replace(offset=500 + place) for place, chunk in enumerate(came)]
    borders = [0, *sorted(data.draw(st.lists(st.integers(1, len(came) - 1), max_size=4, unique=True))), len(came)]
    groups = [came[first:last] for first, last in pairwise(borders)]
    mixed, ordered = play(logic, groups), play(logic, [[chunk] for chunk in chunks])
    assert essence(mixed) == essence(ordered)
    assert mixed.clean == ordered.clean
    assert (mixed.refused, mixed.counts["chunks_duplicate"]) == ([], len(doubled))


def test_a_gap_is_waited_for_while_fewer_chunks_than_may_wait_have_come(
    logic: SessionLogic, chunks: list[Chunk]
) -> None:
    heard = play(logic, [[*chunks[:3], *chunks[4:8]]])
    assert [result.text for result in heard.results] == ["1", "2", "3"]
    assert heard.counts == {"sessions_opened": 1, "chunks": 3, "chunks_early": 4, "audio_us": 300_000}


def test_a_gap_that_does_not_close_is_filled_with_silence_and_reported_with_its_place(
    logic: SessionLogic, chunks: list[Chunk], noise: np.ndarray, final_of: Callable[[np.ndarray], str]
) -> None:
    heard = play(logic, [[*chunks[:3], *chunks[5:]]])
    filled = np.concatenate([noise[:4800], np.zeros(3200, np.float32), noise[8000:]])
    assert heard.finals() == [final_of(filled)]
    assert heard.end().gaps == [Gap(300, 500, 2)]
    assert len(heard.clean) == len(filled) * 2
    assert heard.counts["chunks_missing"] == 2


def test_what_was_given_up_is_late_when_it_comes_and_late_only_once(logic: SessionLogic, chunks: list[Chunk]) -> None:
    heard = play(logic, [[*chunks[:3], *chunks[5:9], chunks[9]._replace(end_of_stream=False)]])
    assert decode_book(heard.book or b"").order.holes == [(3, 5)]
    after = play(logic, [[chunks[4], chunks[4]]], heard.book)
    assert after.refused == [(504, "chunk 4 came after chunks that follow it")]
    assert (after.counts["chunks_late"], after.counts["chunks_duplicate"]) == (1, 1)


def test_a_gap_is_given_up_when_its_time_is_over_by_a_chunk_or_by_the_timer(
    logic: SessionLogic, chunks: list[Chunk]
) -> None:
    waiting = play(logic, [[*chunks[:3], chunks[4]]])
    assert logic.advance(waiting.book, [chunks[5]]).results == []
    turn = logic.expire(waiting.book or b"", "s", 1_000_400 + 1_000)
    assert [result.text for result in turn.results] == ["4", "5"]
    later = play(logic, [[chunks[5]._replace(stream_ms=1_001_401)]], waiting.book)
    assert [result.text for result in later.results] == ["4", "5", "6"]


def test_the_timer_is_set_for_the_gap_and_only_where_that_is_sooner(logic: SessionLogic, chunks: list[Chunk]) -> None:
    first = logic.advance(None, chunks[:2])
    assert first.timer_ms == 1_000_100 + 100 + 5_000
    assert logic.advance(first.book, [chunks[2]]).timer_ms is None
    assert logic.advance(first.book, [chunks[4]]).timer_ms == 1_000_400 + 1_000


def test_a_session_that_ends_does_not_wait(
    logic: SessionLogic, chunks: list[Chunk], noise: np.ndarray, final_of: Callable[[np.ndarray], str]
) -> None:
    waiting = play(logic, [[*chunks[:3], chunks[4]]])
    turn = logic.expire(waiting.book or b"", "s", 2_000_000)
    filled = np.concatenate([noise[:4800], np.zeros(1600, np.float32), noise[6400:8000]])
    assert [result.text or result.reason for result in turn.results][-2:] == [final_of(filled), "idle"]


def test_an_end_that_comes_early_waits_for_what_it_ends(logic: SessionLogic, chunks: list[Chunk]) -> None:
    early = play(logic, [[*chunks[:8], chunks[9]]])
    assert [result.type for result in early.results] == ["partial"] * 8
    assert play(logic, [[chunks[8]]], early.book).end().gaps == []


def test_what_was_before_the_first_sample_is_counted_and_not_filled(
    logic: SessionLogic, chunks: list[Chunk], noise: np.ndarray, final_of: Callable[[np.ndarray], str]
) -> None:
    heard = play(logic, [chunks[5:]])
    assert heard.finals() == [final_of(noise[8000:])]
    assert heard.end().gaps == [Gap(0, 0, 5)]


def test_a_long_gap_is_filled_up_to_the_bound(logic: SessionLogic, chunks: list[Chunk]) -> None:
    far = chunks[9]._replace(sequence=1_000_000_000)
    waiting = play(logic, [[*chunks[:3], far]])
    turn = logic.expire(waiting.book or b"", "s", far.stream_ms + 1_000)
    assert turn.results[-1].gaps == [Gap(300, 800, 999_999_997)]


def test_a_chunk_too_large_to_wait_is_refused_at_once_and_holds_up_nothing(
    logic: SessionLogic, chunks: list[Chunk]
) -> None:
    large = chunks[4]._replace(payload=bytes(9_000_000))
    early = play(logic, [[*chunks[:3], large]])
    assert early.refused == [(504, "a chunk must have at most 8388608 bytes, got 9000000")]
    assert len(early.book or b"") < 1_000
    assert play(logic, [[chunks[3], *chunks[5:]]], early.book).end().gaps == []


def test_a_frame_that_a_gap_has_cut_apart_is_not_joined(logic: SessionLogic, chunks: list[Chunk]) -> None:
    odd = chunks[2]._replace(payload=(chunks[2].payload or b"") + b"x")
    heard = play(logic, [[*chunks[:2], odd, *chunks[4:]]])
    assert heard.counts["frames_cut_off"] == 1
    assert heard.refused == []


def test_capture_times_that_are_not_the_senders_give_no_latency(logic: SessionLogic, chunks: list[Chunk]) -> None:
    heard = play(logic, [[chunks[0]], [chunks[1]._replace(substituted=True)], [chunks[2]]])
    assert [result.captured_ms for result in heard.results] == [1_000_100, None, 1_000_300]
