"""Which chunk is next, which came twice, which came too late."""

from hypothesis import given
from hypothesis import strategies as st

from service.wire import NO_SEQUENCE
from transforms.session_order import Order, Verdict


def take_all(order: Order, sequences: list[int]) -> list[Verdict]:
    return [order.take(sequence, offset) for offset, sequence in enumerate(sequences)]


def test_numbers_in_order_are_next() -> None:
    order = Order()
    assert take_all(order, [0, 1, 2]) == [Verdict.NEXT] * 3
    assert (order.gaps, order.duplicates) == (0, 0)


def test_skipped_numbers_are_late_once_and_duplicates_afterwards() -> None:
    order = Order()
    assert take_all(order, [0, 4, 2, 2, 5]) == [
        Verdict.NEXT,
        Verdict.NEXT,
        Verdict.LATE,
        Verdict.DUPLICATE,
        Verdict.NEXT,
    ]
    assert (order.gaps, order.duplicates, order.holes) == (3, 1, [(1, 2), (3, 4)])


def test_the_holes_that_are_remembered_are_bounded() -> None:
    order = Order()
    take_all(order, list(range(0, 2000, 2)))
    assert order.gaps == 999
    assert len(order.holes) == 32


def test_without_numbers_an_offset_that_was_seen_is_a_duplicate() -> None:
    order = Order(last_offset=9)
    assert order.take(NO_SEQUENCE, 10) is Verdict.NEXT
    assert order.take(NO_SEQUENCE, 10) is Verdict.DUPLICATE


def test_without_numbers_and_offsets_everything_is_next() -> None:
    order = Order()
    assert [order.take(NO_SEQUENCE, -1) for _ in range(3)] == [Verdict.NEXT] * 3


@given(st.lists(st.integers(0, 40), max_size=60))
def test_every_number_is_taken_at_most_once(sequences: list[int]) -> None:
    order = Order()
    verdicts = take_all(order, sequences)
    taken = [sequence for sequence, verdict in zip(sequences, verdicts, strict=True) if verdict is Verdict.NEXT]
    assert taken == sorted(set(taken))
    assert order.gaps == order.next_sequence - len(taken)
    assert order.duplicates == verdicts.count(Verdict.DUPLICATE)
