"""Rows to results without Beam: parts of clips, limits, bad rows beside good ones. The engine is a stand-in."""

import errno
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import soundfile

from model_runtime import Audio, AudioError, DeviceError, Enhanced, Event, Final, MadeBy
from model_runtime.calls import CallTally
from model_runtime.stream import Stream
from transforms.clip_inference import InferenceConfig, infer_rows
from transforms.records import ClipResult, ClipRow, Piece
from transforms.write_audio import CleanFolder, EnhancedConfig

MADE_BY = MadeBy("stand-in:1:float32", "cpu")
RAMP = np.arange(16000, dtype=np.int16)


class _Recorder:
    """Answers with the length of each clip, remembers the calls, and refuses clips of 666 samples."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.streams: list[int] = []
        self.blocks: list[int] = []
        self.refused = 0

    def run(self, clips: Sequence[Audio], batch_size: int, tally: CallTally) -> list[list[Event]]:
        sizes = [len(clip.samples) for clip in clips]
        self.calls.append(sizes)
        if 666 in sizes:
            raise AudioError("666 samples")
        return [[Final(0, 0, str(size), (), 1.0, 0, size), Enhanced(0, bytes(4 * size))] for size in sizes]

    def run_streams(self, streams: Sequence[Stream], batch_size: int, tally: CallTally) -> None:
        """Says the number of each block, and the rate at the end; the blocks of all streams in turn."""
        self.streams.append(len(streams))
        blocks = [iter(stream.blocks) for stream in streams]
        for number in range(20):
            for stream, each in zip(streams, blocks, strict=True):
                block = next(each, None)
                if block is not None:
                    self.blocks.append(len(block))
                    if self.blocks.count(666) > self.refused:
                        self.refused += 1
                        raise AudioError("666 samples")
                    stream.take([Final(number, 0, str(number), (), 1.0, 0, 0), Enhanced(0, block.tobytes())])

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

    def fail(path: str, *_: object) -> Iterator[Audio]:
        attempts.append(path)
        raise AudioError(f"{path}: cannot be read") from OSError(number, "x")

    monkeypatch.setattr("transforms.clip_audio.read_audio", fail)
    row = _row(data=None, path="/a.wav")
    (result,) = infer_rows(_Recorder(), [row], InferenceConfig(retries=1, retry_wait_s=0))
    assert (result.error_retriable, len(attempts)) == (retriable, 1 + retriable)


def test_clips_of_like_length_come_together() -> None:
    calls, _ = _infer([_row(n, size) for n, size in enumerate([500, 100, 400, 200])])
    assert calls == [[100, 200, 400, 500]]


def test_audio_in_hand_is_bounded_by_seconds() -> None:
    calls, _ = _infer([_row(n, 8000) for n in range(5)], max_batch_s=1.0)
    assert calls == [[8000, 8000], [8000, 8000], [8000]]


def test_piece_leaves_the_clean_audio_of_its_recording_alone(tmp_path: Path) -> None:
    rows = [_row(1, 100), _row(2, 100, piece=Piece("k", 0, 2, 0.0, 0.1))]
    whole, piece = infer_rows(_Recorder(), rows, InferenceConfig(), CleanFolder(str(tmp_path), EnhancedConfig(True)))
    assert [path.name for path in (tmp_path / "enhanced").iterdir()] == [Path(whole.enhanced_path).name]
    assert (piece.enhanced_path, piece.piece) == ("", Piece("k", 0, 2, 0.0, 0.1))


def test_duplicate_rows_have_one_result_each() -> None:
    engine = _Recorder()
    results = list(infer_rows(engine, [_row(1, 100), _row(2, 100)], InferenceConfig()))
    assert [(result.row, result.pred_text) for result in results] == [(1, "100"), (2, "100")]


def _recording(number: int, seconds: float, value: float = 0.0) -> ClipRow:
    """A WAV at 8 kHz whose last sample is the value."""
    samples = np.zeros(round(8000 * seconds), np.float32)
    samples[-1] = value
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, 8000, format="WAV", subtype="FLOAT")
    return _row(number, data=buffer.getvalue())


def test_recording_is_heard_in_blocks_after_the_clips_beside_it() -> None:
    engine = _Recorder()
    rows = [_recording(1, 61.5), _recording(2, 60.0), _recording(3, 65.0), _row(4, 100)]
    results = list(infer_rows(engine, rows, InferenceConfig()))
    assert [result.row for result in results] == [4, 2, 1, 3]
    assert engine.calls == [[100, 480_000]]
    assert (engine.streams, engine.blocks) == ([2], [80_000] * 12 + [12_000, 40_000])
    assert [result.pred_text for result in results[2:]] == ["0 1 2 3 4 5 6", "0 1 2 3 4 5 6"]
    assert [result.duration_s for result in results] == [0.00625, 60.0, 61.5, 65.0]


def test_recording_with_a_bad_end_is_a_bad_row_and_leaves_no_clean_audio(tmp_path: Path) -> None:
    rows = [_recording(1, 121.0, np.nan), _recording(2, 61.0)]
    engine = _Recorder()
    clean = CleanFolder(str(tmp_path), EnhancedConfig(True))
    bad, good = infer_rows(engine, rows, InferenceConfig(), clean)
    assert (bad.row, bad.pred_text, bad.error_class) == (1, "", "AudioError")
    assert "row 1: from 120.000 s on: samples must be finite" in bad.error
    assert (good.row, good.pred_text, engine.streams) == (2, "0 1 2 3 4 5 6", [2])
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.wav")] == [good.enhanced_path]
    assert soundfile.info(tmp_path / good.enhanced_path).frames == 61 * 8000
    assert len(list((tmp_path / "enhanced").iterdir())) == 1


def test_recordings_that_are_refused_are_halved_as_clips_are() -> None:
    """The second is refused beside the first and then alone, with what it had said before forgotten."""
    rows = [_recording(1, 61.0), _recording(2, 60.0 + 666 / 8000)]
    engine = _Recorder()
    good, bad = infer_rows(engine, rows, InferenceConfig())
    assert (good.row, good.pred_text) == (1, "0 1 2 3 4 5 6")
    assert (bad.row, bad.error, engine.streams) == (2, "666 samples", [2, 1, 1])


def test_recording_above_the_bound_is_a_bad_row() -> None:
    (result,) = infer_rows(_Recorder(), [_recording(1, 65.0)], InferenceConfig(max_clip_s=62.0))
    assert result.error.endswith("must last at most inference.max_clip_s = 62 s, and lasts longer")


class _Told:
    def __init__(self) -> None:
        self.told: list[tuple[str, list[int], float]] = []

    def begin(self, rows: Sequence[ClipRow], audio_s: float) -> None:
        self.told.append(("begin", [row.row for row in rows], audio_s))

    def go_on(self, rows: Sequence[ClipRow], audio_s: float) -> None:
        self.told.append(("go on", [row.row for row in rows], audio_s))


def test_every_block_of_a_recording_gives_the_process_its_time_anew() -> None:
    watch = _Told()
    list(infer_rows(_Recorder(), [_recording(1, 61.0), _recording(2, 61.0)], InferenceConfig(), watch=watch))
    assert watch.told[:3] == [("begin", [1], 0.0), ("begin", [2], 0.0), ("begin", [1, 2], 20.0)]
    assert watch.told[3:] == [("go on", [1, 2], 20.0)] * 14
