"""Pieces put together: text, words and speech in the recording's time and each word once; a bad piece is a bad row."""

import pytest

from model_runtime import Word
from transforms.join_pieces import from_piece_line, join_pieces, to_piece_line
from transforms.records import ClipResult, Piece, Segment
from transforms.tally import Tally, tally_lines


def _result(
    number: int, start_s: float, end_s: float, text: str, words: list[Word], segments: list[tuple[int, int]]
) -> ClipResult:
    piece = Piece("k", number, 3, start_s, end_s)
    speech = [Segment(*segment) for segment in segments]
    columns = b'{"audio_filepath": "a.wav"}'
    answer = (text, words, speech, end_s - start_s, "m", "cpu", "", "", 16000, None, "", False)
    return ClipResult(2, 7, "s.jsonl", columns, *answer, piece)


def _word(text: str, start_ms: int, end_ms: int) -> Word:
    return Word(text, start_ms, end_ms, 0.5)


# The first two meet in a pause, the others overlap from 16 to 20 s.
PIECES = [
    _result(0, 0.0, 10.0, "One, two.", [_word("One,", 500, 900), _word("two.", 1000, 9500)], [(300, 9900)]),
    _result(
        1,
        10.0,
        20.0,
        "Three four fi",
        [_word("Three", 100, 500), _word("four", 7000, 7500), _word("fi", 9700, 10000)],
        [(0, 600), (6800, 10000)],
    ),
    _result(
        2,
        16.0,
        25.00005,
        "Our five six!",
        [_word("Our", 0, 300), _word("five", 3700, 4200), _word("six!", 8000, 8400)],
        [(0, 4500), (7900, 8500)],
    ),
]


def test_recording_has_the_words_of_all_pieces_once_and_in_its_own_time() -> None:
    joined = join_pieces(PIECES)
    assert joined.pred_text == "One, two. Three four five six!"
    assert [(word.text, word.start_ms, word.end_ms) for word in joined.words] == [
        ("One,", 500, 900),
        ("two.", 1000, 9500),
        ("Three", 10100, 10500),
        ("four", 17000, 17500),
        ("five", 19700, 20200),
        ("six!", 24000, 24400),
    ]
    speech = [(300, 9900), (10000, 10600), (16000, 20500), (23900, 24500)]
    assert joined.segments == [Segment(*each) for each in speech]
    assert (joined.duration_s, joined.piece, joined.error) == (25.00005, None, "")
    assert (joined.source, joined.row, joined.source_path, joined.columns) == PIECES[0][:4]


def test_speech_that_touches_over_a_cut_is_one_stretch() -> None:
    left = _result(0, 0.0, 10.0, "", [], [(100, 500), (9000, 10000)])
    right = _result(1, 10.0, 20.0, "", [], [(0, 300), (400, 500)])
    assert join_pieces([left, right]).segments == [Segment(100, 500), Segment(9000, 10300), Segment(10400, 10500)]


def test_text_whose_words_are_not_found_in_it_is_made_of_the_words_that_are_kept() -> None:
    odd = PIECES[1]._replace(pred_text="something else")
    assert join_pieces([PIECES[0], odd, PIECES[2]]).pred_text == "One, two. Three four five six!"


def test_devices_are_all_that_worked_on_it() -> None:
    devices = [piece._replace(device=device) for piece, device in zip(PIECES, ["npu", "cpu", "npu"], strict=True)]
    assert join_pieces(devices).device == "npu,cpu"


@pytest.mark.parametrize("passes", [(True, True), (True, False)])
def test_recording_with_bad_pieces_is_bad_and_says_where(passes: tuple[bool, bool]) -> None:
    bad = [
        piece._replace(error="the npu is busy", error_class="DeviceError", error_retriable=may_pass, words=[])
        for piece, may_pass in zip(PIECES[1:], passes, strict=True)
    ]
    joined = join_pieces([PIECES[0], *bad])
    assert joined.error == "2 of 3 pieces are bad, the first from 10.0 to 20.0 s: the npu is busy"
    assert (joined.error_class, joined.error_retriable, joined.piece) == ("DeviceError", all(passes), None)


def test_piece_comes_back_from_its_line_and_is_counted_like_a_row() -> None:
    lines = [to_piece_line(piece) for piece in PIECES]
    assert [from_piece_line(line) for line in lines] == PIECES
    assert tally_lines(lines[:2]) == Tally(2, 0, 0, 20_000, {}, {"cpu": 2}, {"m": 2})
