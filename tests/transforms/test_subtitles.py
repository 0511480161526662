"""Subtitles: where cues begin and end, and their two forms."""

from model_runtime import Word
from transforms.records import ClipResult, Segment
from transforms.subtitles import Cue, SubtitlesConfig, cues, to_srt, to_vtt


def _result(*words: tuple[str, int, int], segments: tuple[tuple[int, int], ...] = ((0, 10**6),)) -> ClipResult:
    return ClipResult(
        source=0,
        row=1,
        source_path="/m.jsonl",
        columns=b"{}",
        pred_text="",
        words=[Word(*word, 0.5) for word in words],
        segments=[Segment(*segment) for segment in segments],
        duration_s=1.0,
        model="m",
        device="cpu",
        error="",
        error_class="",
    )


def test_words_of_one_segment_are_one_cue() -> None:
    result = _result(("a", 10, 20), ("b", 30, 40))
    assert cues(result, SubtitlesConfig()) == [Cue(10, 40, "a b")]


def test_cue_ends_with_its_segment() -> None:
    result = _result(("a", 10, 20), ("b", 510, 520), ("c", 530, 540), segments=((0, 100), (500, 600)))
    assert cues(result, SubtitlesConfig()) == [Cue(10, 20, "a"), Cue(510, 540, "b c")]


def test_long_cue_is_cut_at_the_word_that_passes_the_time() -> None:
    result = _result(("a", 0, 400), ("b", 500, 900), ("c", 1000, 1400), ("d", 1500, 1900))
    assert cues(result, SubtitlesConfig(max_cue_ms=1000)) == [Cue(0, 900, "a b"), Cue(1000, 1900, "c d")]


def test_long_cue_is_cut_at_the_word_that_passes_the_characters() -> None:
    result = _result(("12345", 0, 1), ("6789", 2, 3), ("x", 4, 5), ("abcdefghijklmno", 6, 7))
    assert [cue.text for cue in cues(result, SubtitlesConfig(max_cue_characters=10))] == [
        "12345 6789",
        "x",
        "abcdefghijklmno",
    ]


def test_result_without_words_has_no_cues() -> None:
    assert cues(_result(), SubtitlesConfig()) == []


def test_srt_numbers_the_cues_and_writes_commas() -> None:
    assert to_srt([Cue(0, 999, "a"), Cue(3_723_004, 3_724_000, "b c")]) == (
        "1\n00:00:00,000 --> 00:00:00,999\na\n\n2\n01:02:03,004 --> 01:02:04,000\nb c\n"
    )


def test_vtt_has_its_header_and_escapes_its_marks() -> None:
    assert to_vtt([Cue(0, 999, "a <b> & c")]) == ("WEBVTT\n\n00:00:00.000 --> 00:00:00.999\na &lt;b&gt; &amp; c\n")


def test_vtt_without_cues_is_its_header() -> None:
    assert to_vtt([]) == "WEBVTT\n"
