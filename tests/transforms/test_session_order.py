"""Which chunk is next, which must wait, which came twice, which came too late."""

from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.wire import NO_SEQUENCE
from transforms.session_config import SessionConfig
from transforms.session_order import Order, Verdict
from transforms.stream_records import Chunk

CONFIG = SessionConfig(reorder_chunks=3, reorder_ms=500, max_chunk_bytes=100)

MakeChunk = Callable[..., Chunk]


def take_all(order: Order, chunks: list[Chunk]) -> list[Verdict]:
    return [order.take(chunk) for chunk in chunks]


def released(order: Order) -> list[int]:
    chunks = iter(order.release, None)
    return [chunk.sequence for chunk in chunks if chunk is not None]


def test_numbers_in_order_are_next(make_chunk: MakeChunk) -> None:
    order = Order()
    assert take_all(order, [make_chunk(i) for i in range(3)]) == [Verdict.NEXT] * 3
    assert (order.missing, order.duplicates, order.waiting) == (0, 0, [])


def test_a_chunk_that_skips_others_waits_until_they_have_come(make_chunk: MakeChunk) -> None:
    order = Order()
    verdicts = take_all(order, [make_chunk(i) for i in (2, 0, 2, 4)])
    assert verdicts == [Verdict.EARLY, Verdict.NEXT, Verdict.DUPLICATE, Verdict.EARLY]
    assert released(order) == []
    assert order.take(make_chunk(1)) is Verdict.NEXT
    assert released(order) == [2]
    assert [chunk.sequence for chunk in order.waiting] == [4]


def test_numbers_that_were_given_up_are_late_once_and_duplicates_afterwards(make_chunk: MakeChunk) -> None:
    order = Order()
    take_all(order, [make_chunk(0), make_chunk(4)])
    assert order.give_up() == 3
    assert released(order) == [4]
    verdicts = take_all(order, [make_chunk(i) for i in (2, 2, 5)])
    assert verdicts == [Verdict.LATE, Verdict.DUPLICATE, Verdict.NEXT]
    assert (order.missing, order.duplicates, order.holes) == (3, 1, [(1, 2), (3, 4)])


def test_the_holes_that_are_remembered_are_bounded(make_chunk: MakeChunk) -> None:
    order = Order()
    for i in range(0, 2000, 2):
        order.take(make_chunk(i))
        if order.waiting:
            order.give_up()
            order.release()
    assert order.missing == 999
    assert len(order.holes) == 32


def test_waiting_is_bounded_by_number_bytes_and_time(make_chunk: MakeChunk) -> None:
    order = Order()
    assert order.deadline_ms(CONFIG) is None
    take_all(order, [make_chunk(i, bytes(30)) for i in (9, 5, 7)])
    assert not order.is_full(CONFIG)
    assert order.deadline_ms(CONFIG) == 1_000_500 + 500
    order.take(make_chunk(3, b""))
    assert order.is_full(CONFIG)
    heavy = Order()
    take_all(heavy, [make_chunk(i, bytes(60)) for i in (5, 6)])
    assert heavy.is_full(CONFIG)


def test_without_numbers_an_offset_that_was_seen_is_a_duplicate(make_chunk: MakeChunk) -> None:
    order = Order(last_offset=9)
    chunk = make_chunk(sequence=NO_SEQUENCE, offset=10)
    assert take_all(order, [chunk, chunk]) == [Verdict.NEXT, Verdict.DUPLICATE]


def test_without_numbers_and_offsets_everything_is_next(make_chunk: MakeChunk) -> None:
    chunk = make_chunk(sequence=NO_SEQUENCE, offset=-1)
    assert take_all(Order(), [chunk] * 3) == [Verdict.NEXT] * 3


@given(st.lists(st.integers(0, 40), max_size=60))
@settings(deadline=None, suppress_health_check=list(HealthCheck))
def test_every_number_is_heard_at_most_once_and_in_order(make_chunk: MakeChunk, sequences: list[int]) -> None:
    order, heard = Order(), []
    for sequence in sequences:
        chunk = make_chunk(sequence)
        if order.take(chunk) is Verdict.NEXT:
            heard.append(sequence)
        while len(order.waiting) > 3:
            order.give_up()
            heard += released(order)
        heard += released(order)
    assert heard == sorted(set(heard))
    assert order.missing + len(heard) == order.next_sequence
    assert not {chunk.sequence for chunk in order.waiting} & set(heard)
