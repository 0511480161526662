"""Rows to results without Beam: parts of clips, limits, bad rows beside good ones. The engine is a stand-in."""

import errno
import io
from collections.abc import Sequence

import numpy as np
import pytest
import soundfile

from model_runtime import Audio, AudioError, DeviceError, Enhanced, Event, Final, MadeBy, SpeechEnd, Word
from model_runtime.calls import CallTally
from transforms.clip_inference import InferenceConfig, clip_result, infer_rows, load_clip
from transforms.records import ClipResult, ClipRow, Segment

MADE_BY = MadeBy("stand-in:1:float32", "cpu")
RAMP = np.arange(16000, dtype=np.int16)


class _Recorder:
    """Answers with the length of each clip, remembers the calls, and refuses clips of 666 samples."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []

    def run(self, clips: Sequence[Audio], batch_size: int, tally: CallTally) -> list[list[Event]]:
        sizes = [len(clip.samples) for clip in clips]
        self.calls.append(sizes)
        if 666 in sizes:
            raise AudioError("666 samples")
        return [[Final(0, 0, str(size), (), 1.0, 0, size)] for size in sizes]

    def made_by(self) -> MadeBy:
        return MADE_BY


def _wav(samples: np.ndarray, rate_hz: int = 16000) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate_hz, format="WAV")
    return buffer.getvalue()


def _row(number: int = 1, size: int = 16000, **fields: object) -> ClipRow:
    row = ClipRow(0, number, f"t.parquet row {number}", "t.parquet", b"{}", data=_wav(RAMP[:size]))
    return row._replace(**fields)


def _infer(rows: list[ClipRow], **settings: float) -> tuple[list[list[int]], dict[int, ClipResult]]:
    engine = _Recorder()
    results = list(infer_rows(engine, rows, InferenceConfig(**settings)))  # type: ignore[arg-type]
    assert len(results) == len(rows)
    return engine.calls, {result.row: result for result in results}


@pytest.mark.parametrize(
    ("start_s", "duration_s", "first", "samples"),
    [
        (None, None, 0, 16000),
        (0.25, None, 4000, 12000),
        (0.25, 0.5, 4000, 8000),
        (None, 0.5, 0, 8000),
        (0.25, 5.0, 4000, 12000),
        (0.0, 0.995, 0, 15920),
        (None, 0.995, 0, 16000),
        (None, 0.985, 0, 15760),
        (None, 1.01, 0, 16000),
    ],
)
def test_row_selects_its_part_of_the_audio(
    start_s: float | None, duration_s: float | None, first: int, samples: int
) -> None:
    """A rounded duration alone does not cut the last 10 ms."""
    raw = (RAMP / 32768).astype("<f4").tobytes()
    for row in (_row(start_s=start_s, duration_s=duration_s), _row(data=raw, sample_rate_hz=16000)):
        audio = load_clip(row._replace(start_s=start_s, duration_s=duration_s), 3600)
        assert (audio.samples * 32768).tolist() == list(range(first, first + samples))


def test_offset_beyond_raw_samples_is_refused() -> None:
    row = _row(data=b"\0" * 400, sample_rate_hz=8000, start_s=1.0)
    with pytest.raises(AudioError, match=r"row 1: offset must lie within the audio, got 1.0 s in 0.013 s"):
        load_clip(row, 3600)


def test_clip_longer_than_allowed_is_refused() -> None:
    with pytest.raises(AudioError, match=r"row 1: must last at most inference.max_clip_s = 0.9 s"):
        load_clip(_row(), 0.9)


def test_part_of_a_long_file_may_be_used() -> None:
    assert len(load_clip(_row(start_s=0.2, duration_s=0.1), 0.5).samples) == 1600


def test_error_of_a_file_names_the_row_that_wants_it() -> None:
    row = ClipRow(0, 3, "m.jsonl line 3", "m.jsonl", b"{}", path="/gone.wav")
    with pytest.raises(AudioError, match=r"^m.jsonl line 3: /gone.wav: cannot be read: No such file or directory$"):
        load_clip(row, 3600)


def test_sample_that_is_not_finite_names_the_row_and_the_index() -> None:
    samples = np.array([0, 0, np.nan, 0], "<f4")
    with pytest.raises(AudioError, match=r"row 1: samples must be finite .* sample 2 of 4 is nan"):
        load_clip(_row(data=samples.tobytes(), sample_rate_hz=16000), 3600)


def test_bad_rows_do_not_disturb_their_neighbours() -> None:
    rows = [_row(1, 100), _row(2, data=b"<html>"), _row(3, 300), _row(4, error="t.parquet row 4: the audio is null")]
    calls, results = _infer(rows)
    assert calls == [[100, 300]]
    assert [results[n].pred_text for n in (1, 2, 3, 4)] == ["100", "", "300", ""]
    assert [results[n].error_class for n in (1, 2, 3, 4)] == ["", "AudioError", "", "AudioError"]
    assert results[2].error == "t.parquet row 2: not decodable (Format not recognised.): it is an HTML page"


def test_refused_batch_is_halved_down_to_the_clip_that_is_to_blame() -> None:
    calls, results = _infer([_row(n, size) for n, size in enumerate([100, 200, 300, 400, 500, 600, 666, 700])])
    assert calls == [
        [100, 200, 300, 400, 500, 600, 666, 700],
        [100, 200, 300, 400],
        [500, 600, 666, 700],
        [500, 600],
        [666, 700],
        [666],
        [700],
    ]
    assert [results[n].pred_text for n in range(8)] == ["100", "200", "300", "400", "500", "600", "", "700"]
    assert (results[6].error, results[6].error_retriable) == ("666 samples", False)


class _Busy(_Recorder):
    """Refuses its first calls, for a reason that passes."""

    def __init__(self, refusals: int) -> None:
        super().__init__()
        self.refusals = refusals

    def run(self, clips: Sequence[Audio], batch_size: int, tally: CallTally) -> list[list[Event]]:
        self.refusals -= 1
        if self.refusals >= 0:
            raise DeviceError("the npu is busy")
        return super().run(clips, batch_size, tally)


@pytest.mark.parametrize(("refusals", "text", "error"), [(2, "100", ""), (3, "", "the npu is busy")])
def test_error_that_may_pass_is_tried_again_so_often(refusals: int, text: str, error: str) -> None:
    config = InferenceConfig(retries=2, retry_wait_s=0)
    (result,) = infer_rows(_Busy(refusals), [_row(1, 100)], config)
    assert (result.pred_text, result.error, result.error_retriable) == (text, error, bool(error))


@pytest.mark.parametrize(("number", "retriable"), [(errno.EIO, True), (errno.ESTALE, True), (errno.ENOENT, False)])
def test_error_of_a_disk_may_pass_and_a_missing_file_does_not(
    monkeypatch: pytest.MonkeyPatch, number: int, retriable: bool
) -> None:
    attempts = []

    def fail(path: str, *_: object) -> Audio:
        attempts.append(path)
        raise AudioError(f"{path}: cannot be read") from OSError(number, "x")

    monkeypatch.setattr("transforms.clip_inference.decode_audio", fail)
    row = _row(data=None, path="/a.wav")
    (result,) = infer_rows(_Recorder(), [row], InferenceConfig(retries=1, retry_wait_s=0))
    assert (result.error_retriable, len(attempts)) == (retriable, 1 + retriable)


def test_clips_of_like_length_come_together() -> None:
    calls, _ = _infer([_row(n, size) for n, size in enumerate([500, 100, 400, 200])])
    assert calls == [[100, 200, 400, 500]]


def test_audio_in_hand_is_bounded_by_seconds() -> None:
    calls, _ = _infer([_row(n, 8000) for n in range(5)], max_batch_s=1.0)
    assert calls == [[8000, 8000], [8000, 8000], [8000]]


def test_duplicate_rows_have_one_result_each() -> None:
    engine = _Recorder()
    results = list(infer_rows(engine, [_row(1, 100), _row(2, 100)], InferenceConfig()))
    assert [(result.row, result.pred_text) for result in results] == [(1, "100"), (2, "100")]


def test_result_joins_the_finals_and_gives_times_in_ms_of_the_clip() -> None:
    words = (Word("a", 10, 20, 0.5), Word("b", 900, 990, 0.75))
    events: list[Event] = [
        SpeechEnd(0, 80, 4000, "silence"),
        Final(0, 1, "a", words[:1], 0.5, 80, 4000),
        Final(1, 1, "", (), 0.0, 5000, 5000),
        SpeechEnd(2, 4804, 8000, "stream"),
        Final(2, 1, "b", words[1:], 0.75, 4804, 8000),
    ]
    result = clip_result(_row(), Audio(np.zeros(8000, np.float32), 8000), events, MADE_BY, False)
    assert result.pred_text == "a b"
    assert result.words == list(words)
    assert result.segments == [Segment(10, 500), Segment(601, 1000)]
    assert (result.duration_s, result.enhanced) == (1.0, None)


def test_clean_audio_is_joined_to_16_bits_when_it_is_kept() -> None:
    parts = [np.array(values, "<f4").tobytes() for values in ([0.5, -1.0], [], [2.0])]
    events: list[Event] = [Enhanced(0, part) for part in parts]
    result = clip_result(_row(), Audio(np.zeros(3, np.float32), 8000), events, MADE_BY, True)
    assert np.frombuffer(result.enhanced or b"", "<i2").tolist() == [16384, -32768, 32767]
