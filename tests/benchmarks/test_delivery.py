"""What counts as lost, doubled and changed to a reader who keeps one row per id."""

from typing import Any

from benchmarks.delivery import Delivery, compare, said


def final(result_id: str, text: str = "yes", start_ms: int = 100, kind: str = "final") -> dict[str, Any]:
    words = [{"text": text, "start_ms": start_ms, "end_ms": 300, "confidence": 0.5}]
    return {
        "type": kind,
        "result_id": result_id,
        "text": text,
        "words": words,
        "start_ms": start_ms,
        "end_ms": 300,
        "latency_ms": 7,
    }


EXPECTED = {name: said(final(name)) for name in ("a", "b", "c")}


def test_what_is_said_again_under_its_id_is_only_repeated() -> None:
    delivery = compare(EXPECTED, [final("a"), final("b"), final("a"), final("c"), final("a")])
    assert delivery == Delivery(expected=3, lost=[], doubled=[], changed=[], repeated=2)
    assert delivery.is_exact()


def test_what_never_comes_is_lost_and_what_nobody_expects_is_doubled() -> None:
    delivery = compare(EXPECTED, [final("a"), final("b"), final("d")])
    assert delivery == Delivery(expected=3, lost=["c"], doubled=["d"], changed=[], repeated=0)
    assert not delivery.is_exact()


def test_one_copy_with_another_text_or_time_is_a_change() -> None:
    others = [final("a", text="no"), final("a"), final("b"), final("b", start_ms=101), final("c")]
    assert compare(EXPECTED, others) == Delivery(expected=3, lost=[], doubled=[], changed=["a", "b"], repeated=2)


def test_only_finals_count() -> None:
    others = [final("a", kind="partial"), final("b", kind="session_end")]
    assert compare(EXPECTED, [*others, *map(final, "abc")]).is_exact()
