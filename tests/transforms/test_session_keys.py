"""One key, several sessions: tombstones, keys used again, senders that pause or begin again, and length."""

from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np
import pytest

from service.wire import NO_SEQUENCE
from transforms.session_book import decode_book, encode_book
from transforms.session_config import OutputConfig, SessionConfig
from transforms.session_logic import SessionLogic
from transforms.stream_records import Chunk

CONFIG = SessionConfig(idle_timeout_ms=5_000, tombstone_ms=60_000, max_session_ms=1_000)


@pytest.fixture
def logic(stand_in: object) -> SessionLogic:
    return SessionLogic(stand_in, CONFIG, OutputConfig(partials=False))


def play(logic: SessionLogic, chunks: Iterable[Chunk]) -> tuple[list[tuple[str, str]], Counter[str]]:
    """Gives (result_id, text or reason) of everything said, and what was counted."""
    book, said, counts = None, [], Counter[str]()
    for chunk in chunks:
        turn = logic.advance(book, [chunk])
        book = turn.book
        said += [(result.result_id, result.text or result.reason) for result in turn.results]
        counts += turn.counts
    return said, counts


def test_a_key_used_again_after_its_end_begins_clean(
    logic: SessionLogic, make_chunk: Callable[..., Chunk], part: np.ndarray, final_of: Callable[[np.ndarray], str]
) -> None:
    first = make_chunk(0, part, end_of_stream=True)
    again = make_chunk(0, part, end_of_stream=True, offset=900, event_ms=1_600_000, stream_ms=1_600_000)
    said, _ = play(logic, [first, again])
    assert said == [
        ("s/500/0/1", final_of(part)),
        ("s/500/-1/end", "end_of_stream"),
        ("s/900/0/1", final_of(part)),
        ("s/900/-1/end", "end_of_stream"),
    ]


def test_a_first_chunk_that_comes_again_after_the_end_is_a_duplicate(
    logic: SessionLogic, make_chunk: Callable[..., Chunk], part: np.ndarray
) -> None:
    first = make_chunk(0, part, end_of_stream=True)
    said, counts = play(logic, [first, first._replace(offset=501)])
    assert len(said) == 2
    assert counts["chunks_duplicate"] == 1


def test_a_chunk_after_the_end_is_late(logic: SessionLogic, make_chunk: Callable[..., Chunk], part: np.ndarray) -> None:
    said, counts = play(logic, [make_chunk(0, part, end_of_stream=True), make_chunk(1, part)])
    assert len(said) == 2
    assert (counts["chunks_late"], counts["chunks_refused"], counts["sessions_opened"]) == (1, 1, 1)


def test_a_sender_that_goes_on_after_a_pause_is_heard_in_a_new_session_without_gaps(
    logic: SessionLogic, make_chunk: Callable[..., Chunk], part: np.ndarray, final_of: Callable[[np.ndarray], str]
) -> None:
    pause = make_chunk(1, part, event_ms=1_010_000)
    said, counts = play(
        logic, [make_chunk(0, part), pause, make_chunk(2, part, event_ms=1_010_100, end_of_stream=True)]
    )
    assert said == [
        ("s/500/0/1", final_of(part)),
        ("s/500/-1/end", "idle"),
        ("s/501/0/2", final_of(np.concatenate([part, part]))),
        ("s/501/-1/end", "end_of_stream"),
    ]
    assert counts["chunks_missing"] == 0


def test_a_pause_up_to_the_idle_timeout_does_not_end_a_session(
    stand_in: object, make_chunk: Callable[..., Chunk], part: np.ndarray
) -> None:
    patient = SessionLogic(stand_in, SessionConfig(idle_timeout_ms=5_000), OutputConfig(partials=False))
    said, _ = play(patient, [make_chunk(0, part), make_chunk(1, part, event_ms=1_005_100)])
    assert said == []


def test_a_sender_that_begins_again_without_an_end_gets_a_new_session(
    logic: SessionLogic, make_chunk: Callable[..., Chunk], part: np.ndarray
) -> None:
    again = make_chunk(0, part, event_ms=1_002_000, offset=700)
    said, counts = play(logic, [make_chunk(0, part), make_chunk(1, part), again])
    assert [reason for _, reason in said][1:] == ["restart"]
    assert (counts["sessions_opened"], counts["chunks_duplicate"]) == (2, 0)


def test_the_longest_session_ends_and_what_follows_is_the_next(
    logic: SessionLogic, make_chunk: Callable[..., Chunk], part: np.ndarray
) -> None:
    said, counts = play(logic, [make_chunk(i, part) for i in range(25)])
    assert [id_ for id_, reason in said if reason == "length"] == ["s/500/-1/end", "s/510/-1/end"]
    assert (counts["chunks"], counts["chunks_missing"]) == (25, 0)


def test_without_sequence_numbers_the_offset_is_the_order(
    logic: SessionLogic, make_chunk: Callable[..., Chunk], part: np.ndarray
) -> None:
    plain = [make_chunk(i, part, sequence=NO_SEQUENCE) for i in range(3)]
    ended = make_chunk(3, part, sequence=NO_SEQUENCE, end_of_stream=True)
    said, counts = play(logic, [*plain, plain[1], ended, make_chunk(4, part, sequence=NO_SEQUENCE)])
    assert [reason for _, reason in said][1:] == ["end_of_stream"]
    assert (counts["chunks_duplicate"], counts["sessions_opened"], counts["chunks"]) == (1, 2, 5)


def test_field_case_k05_without_sequence_numbers_a_session_does_not_go_on_behind_lost_records(
    logic: SessionLogic, make_chunk: Callable[..., Chunk], part: np.ndarray, final_of: Callable[[np.ndarray], str]
) -> None:
    before = [make_chunk(i, part, sequence=NO_SEQUENCE) for i in range(2)]
    behind = [make_chunk(i, part, sequence=NO_SEQUENCE, lost_before=502) for i in range(2, 4)]
    behind[-1] = behind[-1]._replace(end_of_stream=True)
    said, counts = play(logic, [*before, *behind])
    twice = final_of(np.tile(part, 2))
    assert said == [
        ("s/500/0/2", twice),
        ("s/500/-1/end", "lost"),
        ("s/502/0/2", twice),
        ("s/502/-1/end", "end_of_stream"),
    ]
    assert (counts["sessions_opened"], counts["sessions_ended"], counts["chunks_late"]) == (2, 2, 0)


def test_lost_records_that_numbers_account_for_end_no_session(
    stand_in: object, make_chunk: Callable[..., Chunk], part: np.ndarray, final_of: Callable[[np.ndarray], str]
) -> None:
    logic = SessionLogic(stand_in, SessionConfig(reorder_chunks=0), OutputConfig(partials=False))
    chunks = [make_chunk(0, part), make_chunk(1, part, lost_before=501), make_chunk(3, part, lost_before=503)]
    said, counts = play(logic, [*chunks, make_chunk(4, part, end_of_stream=True, lost_before=503)])
    filled = np.concatenate([part, part, np.zeros(1600, np.float32), part, part])
    assert said == [("s/500/0/5", final_of(filled)), ("s/500/-1/end", "end_of_stream")]
    assert counts["chunks_missing"] == 1


def test_records_that_were_lost_before_a_session_began_are_not_its_own(
    logic: SessionLogic, make_chunk: Callable[..., Chunk], part: np.ndarray
) -> None:
    chunks = [make_chunk(i, part, sequence=NO_SEQUENCE, lost_before=400, end_of_stream=i == 2) for i in range(3)]
    assert [reason for _, reason in play(logic, chunks)[0]][1:] == ["end_of_stream"]


def test_a_session_without_numbers_goes_on_where_its_key_lies_after_partitions_were_added(
    logic: SessionLogic, make_chunk: Callable[..., Chunk], part: np.ndarray, final_of: Callable[[np.ndarray], str]
) -> None:
    before = [make_chunk(i, part, sequence=NO_SEQUENCE) for i in range(2)]
    moved = make_chunk(2, part, sequence=NO_SEQUENCE, partition=7, offset=0, lost_before=0)
    ended = make_chunk(3, part, sequence=NO_SEQUENCE, partition=7, offset=1, end_of_stream=True)
    said, counts = play(logic, [*before, moved, moved, ended])
    assert said == [("s/500/0/4", final_of(np.tile(part, 4))), ("s/500/-1/end", "end_of_stream")]
    assert counts["chunks_duplicate"] == 1


def test_a_key_that_lies_elsewhere_gives_its_next_session_another_number(
    logic: SessionLogic, make_chunk: Callable[..., Chunk], part: np.ndarray
) -> None:
    first = make_chunk(0, part, end_of_stream=True)
    moved = make_chunk(0, part, partition=2, offset=first.offset, event_ms=1_600_000, end_of_stream=True)
    said, _ = play(logic, [first, moved])
    assert [id_ for id_, _ in said if id_.endswith("end")] == ["s/500/-1/end", f"s/{2 * 2**42 + 500}/-1/end"]


def test_a_numbered_session_may_follow_one_without_numbers(
    logic: SessionLogic, make_chunk: Callable[..., Chunk], part: np.ndarray
) -> None:
    plain = make_chunk(0, part, sequence=NO_SEQUENCE, end_of_stream=True)
    said, _ = play(logic, [plain, make_chunk(0, part, event_ms=1_009_000, offset=800, end_of_stream=True)])
    assert [id_ for id_, _ in said if id_.endswith("end")] == ["s/500/-1/end", "s/800/-1/end"]


def test_a_memory_that_cannot_be_read_ends_the_session_and_the_chunk_opens_the_next(
    logic: SessionLogic, make_chunk: Callable[..., Chunk], part: np.ndarray
) -> None:
    book = decode_book(logic.advance(None, [make_chunk(0, part)]).book or b"")
    book.engine = b"of other models"
    turn = logic.advance(encode_book(book), [make_chunk(1, part)])
    assert [result.reason for result in turn.results if result.type == "session_end"] == ["state"]
    assert (turn.counts["states_refused"], turn.counts["sessions_opened"]) == (1, 1)


def test_bytes_that_are_no_memory_are_taken_as_none(
    logic: SessionLogic, make_chunk: Callable[..., Chunk], part: np.ndarray
) -> None:
    turn = logic.advance(b"rubbish", [make_chunk(0, part)])
    assert (turn.counts["states_refused"], turn.counts["sessions_opened"]) == (1, 1)


def test_sessions_do_not_colour_each_other(
    logic: SessionLogic, make_chunk: Callable[..., Chunk], part: np.ndarray
) -> None:
    loud = [make_chunk(i, part, end_of_stream=i == 4) for i in range(5)]
    quiet = [make_chunk(i, np.zeros(1600, np.float32), session="q", end_of_stream=i == 4) for i in range(5)]
    books: dict[str, bytes | None] = {}
    mixed: dict[str, list[tuple[str, str]]] = {"s": [], "q": []}
    for chunk in (chunk for pair in zip(loud, quiet, strict=True) for chunk in pair):
        turn = logic.advance(books.get(chunk.session), [chunk])
        books[chunk.session] = turn.book
        mixed[chunk.session] += [(result.result_id, result.text or result.reason) for result in turn.results]
    assert mixed == {"s": play(logic, loud)[0], "q": play(logic, quiet)[0]}


def test_field_case_s08_a_session_that_is_only_kept_alive_ends_after_its_longest_time(
    logic: SessionLogic, make_chunk: Callable[..., Chunk], part: np.ndarray
) -> None:
    opened = logic.advance(None, [make_chunk(0, part)])
    alive = logic.advance(opened.book, [make_chunk(1, b"", event_ms=1_000_900)])
    assert opened.timer_ms == 1_000_000 + CONFIG.max_session_ms
    ended = logic.expire(alive.book or b"", "s", opened.timer_ms)
    assert [result.reason for result in ended.results][-1:] == ["length"]
