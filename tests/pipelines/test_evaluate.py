"""Measures of results against figures reckoned by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile

from pipelines.evaluate import comparison, main, sound_figures, speech_figures, text_figures
from pipelines.sound_quality import measures, si_sdr_db
from pipelines.speech_errors import SpeechErrors, speech_errors
from pipelines.text_errors import normalised

RATE_HZ = 16_000


def _row(number: int, answer: str = "", **fields: Any) -> dict[str, Any]:
    row = {"source_file": "/m.jsonl", "source_row": number, "audio_filepath": f"{number}.wav", "pred_text": answer}
    return {**row, "segments": [], "error": "", **fields}


def test_rates_are_sums_over_all_rows_and_a_bad_row_counts_as_silence() -> None:
    pytest.importorskip("jiwer")
    rows = [
        _row(1, "one two tree", text="One, two: three!"),
        _row(2, "up", text="up"),
        _row(3, text="go"),
        _row(4, "x"),
    ]
    figures = text_figures(rows, "text")
    assert (figures["rows"], figures["wer"], figures["rows_without_an_error"]) == (3, 0.4, 1)
    # "one two three" to "one two tree" is one of 13 characters; "go" is lost whole.
    assert figures["cer"] == round(3 / 17, 5)
    assert [worst["row"] for worst in figures["worst"]] == ["/m.jsonl#1", "/m.jsonl#3"]


def test_rows_without_a_reference_give_no_rates() -> None:
    assert text_figures([_row(1, "a"), _row(2, "b", text="")], "text") == {}


@pytest.mark.parametrize(
    ("text", "expected"), [("  Don't  STOP—now. ", "don't stop now"), ("Straße ①", "straße 1"), ("...", "")]
)
def test_texts_are_compared_without_case_and_punctuation(text: str, expected: str) -> None:
    assert normalised(text) == expected


@pytest.mark.parametrize(
    ("reference", "heard", "collar_ms", "expected"),
    [
        ([(100, 200)], [(100, 200)], 0, (100, 0, 0)),
        ([(100, 200)], [], 0, (100, 100, 0)),
        ([], [(0, 30)], 0, (0, 0, 30)),
        ([(100, 200), (300, 400)], [(150, 350)], 0, (200, 100, 100)),
        ([(100, 200), (150, 300)], [(0, 120), (110, 250)], 0, (200, 50, 100)),
        ([(100, 200)], [(90, 215)], 10, (80, 0, 5)),
        ([(100, 200)], [(110, 190)], 10, (80, 0, 0)),
    ],
)
def test_missed_and_false_speech_are_measured_in_time(
    reference: list[tuple[int, int]], heard: list[tuple[int, int]], collar_ms: int, expected: tuple[int, int, int]
) -> None:
    assert speech_errors(reference, heard, collar_ms) == SpeechErrors(*expected)


def test_speech_errors_are_sums_over_the_rows_that_have_a_truth() -> None:
    truth = [{"start_ms": 0, "end_ms": 1000}]
    rows = [_row(1, speech=truth, segments=[{"start_ms": 100, "end_ms": 1200}]), _row(2, speech=[]), _row(3)]
    assert speech_figures(rows, "speech", 0) == {
        "rows": 2,
        "vad_error_rate": 0.3,
        "speech_ms": 1000,
        "missed_ms": 100,
        "false_ms": 200,
    }


def test_si_sdr_is_that_of_the_energies_and_does_not_know_the_scale() -> None:
    """The noise is a sine that is orthogonal to the speech, with a tenth of its amplitude: 20 dB."""
    time = np.arange(RATE_HZ) / RATE_HZ
    speech, noise = np.sin(2 * np.pi * 440 * time), 0.1 * np.sin(2 * np.pi * 880 * time)
    for scale in (1.0, 0.3):
        assert si_sdr_db(speech, scale * (speech + noise) + 0.2) == pytest.approx(20.0, abs=1e-6)


def test_stoi_of_a_recording_and_itself_is_one() -> None:
    pytest.importorskip("pystoi")
    noise = np.random.default_rng(3).normal(0, 0.1, RATE_HZ)
    assert measures(noise, noise, RATE_HZ)["stoi"] == pytest.approx(1.0, abs=1e-6)


def test_clean_audio_is_measured_against_the_truth_and_against_what_came_in(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    truth = generator.normal(0, 0.1, RATE_HZ)
    noise = generator.normal(0, 0.1, RATE_HZ)
    noise -= (noise @ truth) / (truth @ truth) * truth
    noise *= np.sqrt((truth @ truth) / (noise @ noise))
    for name, samples in (("truth", truth), ("1", truth + noise), ("clean", truth + 0.1 * noise)):
        soundfile.write(tmp_path / f"{name}.wav", samples, RATE_HZ, subtype="FLOAT")
    row = _row(1, source_file=str(tmp_path / "m.jsonl"), clean_filepath="truth.wav", enhanced_filepath="clean.wav")
    gone = {**row, "clean_filepath": "gone.wav"}
    figures = sound_figures([row, gone, _row(2)], "clean_filepath", tmp_path)
    assert (figures["rows"], len(figures["skipped"])) == (1, 1)
    assert figures["si_sdr_db"] == pytest.approx(20.0, abs=0.02)
    assert figures["si_sdr_db_gain"] == pytest.approx(20.0, abs=0.02)


def test_two_runs_are_compared_by_the_identity_of_rows() -> None:
    pytest.importorskip("jiwer")
    here = [_row(1, "a b", segments=[{"start_ms": 0, "end_ms": 100}]), _row(2, "c d"), _row(3, "e")]
    there = [_row(2, "c x"), _row(1, "a b", segments=[{"start_ms": 0, "end_ms": 90}]), _row(9, "f")]
    assert comparison(here, there) == {
        "rows": 2,
        "only_here": 1,
        "only_there": 1,
        "equal_texts": 1,
        "word_difference_rate": 0.25,
        "speech_difference_rate": 0.1,
        "differing": [{"row": "/m.jsonl#2", "text": "c d", "other": "c x"}],
    }


def test_streaming_results_are_joined_to_sessions_and_found_by_the_name_of_the_audio(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("jiwer")
    (tmp_path / "results.jsonl").write_text(json.dumps(_row(1, "up stop", audio_filepath="x/lift.wav")) + "\n")
    final = {"session": "lift", "type": "final", "revision": 1, "words": [], "start_ms": 0, "end_ms": 5}
    results = [
        {**final, "result_id": "lift/7/1/1", "utterance": 1, "text": "stop"},
        {**final, "result_id": "lift/7/0/1", "utterance": 0, "text": "up"},
        {**final, "result_id": "lift/7/0/0", "utterance": 0, "text": "cup", "revision": 0},
        {**final, "result_id": "lift/7/-1/end", "utterance": -1, "type": "session_end", "text": ""},
    ]
    (tmp_path / "tail.jsonl").write_text("".join(json.dumps(result) + "\n" for result in results))
    figures = tmp_path / "figures.json"
    assert main([str(tmp_path), "--against", str(tmp_path / "tail.jsonl"), "--json", str(figures)]) == 0
    against = json.loads(figures.read_text())["against"]
    assert (against["rows"], against["equal_texts"], against["word_difference_rate"]) == (1, 1, 0.0)
    assert "  equal_texts: 1\n" in capsys.readouterr().out


def test_a_replay_is_compared_with_the_live_run_session_by_session(tmp_path: Path) -> None:
    pytest.importorskip("jiwer")
    spans = {"start_ms": 0, "end_ms": 5}
    live, again = [], [_row(3, error="late", session="a", stage="order")]
    for beginning, texts in ((0, ["one", "two"]), (9, ["three"])):
        for utterance, text in enumerate(texts):
            name = {"result_id": f"a/{beginning}/{utterance}/1", "session": "a", "utterance": utterance, "revision": 1}
            live.append({**name, "type": "final", "text": text, "words": [], **spans})
            again.append({**_row(1 + beginning, text), **name, "words": [], "segments": [spans]})
    for file, rows in (("live", live), ("again", again[::-1])):
        (tmp_path / f"{file}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    figures = tmp_path / "figures.json"
    assert main([str(tmp_path / "again.jsonl"), "--against", str(tmp_path / "live.jsonl"), "--json", str(figures)]) == 0
    against = json.loads(figures.read_text())["against"]
    assert (against["rows"], against["equal_texts"], against["only_here"], against["only_there"]) == (2, 2, 0, 0)


def test_parquet_results_are_read_as_json_lines_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.Table.from_pylist([_row(1, "a"), _row(2, error="bad")]), tmp_path / "results.parquet")
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == "rows:\n  rows: 2\n  errors: 1\n"


@pytest.mark.parametrize(("text", "reason"), [(None, "cannot be read"), ("{}", "has neither"), ("x", "is no file of")])
def test_file_that_holds_no_results_ends_with_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, reason: str
) -> None:
    if text is not None:
        (tmp_path / "r.jsonl").write_text(text)
    assert main([str(tmp_path / "r.jsonl")]) == 2
    assert reason in capsys.readouterr().err
