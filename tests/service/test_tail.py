"""What is shown of results."""

import pytest

from service.tail import Display, Fields, Once


def result(kind: str, **fields: object) -> Fields:
    return {
        "type": kind,
        "session": "s",
        "text": "one two",
        "start_ms": 1_500,
        "end_ms": 2_340,
        "audio_ms": 2_400,
        "latency_ms": 87,
        "reason": "idle",
        **fields,
    }


def test_a_file_gets_a_line_for_each_final_and_nothing_else() -> None:
    kinds = ("speech_begin", "partial", "final", "speech_end", "session_end")
    shown = [Display(None).show(result(kind)) for kind in kinds]
    assert shown == ["", "", "s  1.50-2.34  one two  (87 ms)\n", "", ""]


def test_a_terminal_asks_whether_an_utterance_is_over_where_that_is_not_certain() -> None:
    display = Display(80)
    assert display.show(result("tentative_end")) == "\r\x1b[Ks: one two (over?)"
    assert display.show(result("speech_resumed", text="")) == "\r\x1b[Ks:  ..."
    assert Display(None).show(result("tentative_end")) == ""


def test_a_final_without_a_clock_has_no_latency() -> None:
    assert Display(None).show(result("final", latency_ms=None)) == "s  1.50-2.34  one two\n"


def test_a_terminal_overwrites_its_last_line_with_partials() -> None:
    display = Display(80)
    assert display.show(result("partial")) == "\r\x1b[Ks: one two ..."
    assert display.show(result("final")) == "\r\x1b[Ks  1.50-2.34  one two  (87 ms)\n"
    assert display.show(result("session_end")) == "\r\x1b[Ks  ended after 2.40 s (idle)\n"


@pytest.mark.parametrize("width", [10, 12])
def test_a_long_partial_shows_its_end_within_one_line(width: int) -> None:
    shown = Display(width).show(result("partial")).removeprefix("\r\x1b[K")
    assert len(shown) == width - 1
    assert "s: one two ...".endswith(shown[1:])


def test_a_result_that_is_written_again_is_told_from_a_new_one() -> None:
    once = Once(remembered=2)
    ids = ["a", "b", "a", "c", "b", "a"]
    assert [once.is_new({"result_id": result_id}) for result_id in ids] == [True, True, False, True, False, True]
