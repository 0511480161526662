"""The audio of rows: which part of a file is meant, whole and in blocks, and what is said of a bad one."""

import io

import numpy as np
import pytest
import soundfile

from model_runtime import AudioError
from transforms.clip_audio import read_clip
from transforms.records import ClipRow

RAMP = np.arange(16000, dtype=np.int16)


def _wav(samples: np.ndarray, rate_hz: int = 16000) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate_hz, format="WAV")
    return buffer.getvalue()


def _row(**fields: object) -> ClipRow:
    return ClipRow(0, 1, "t.parquet row 1", "t.parquet", b"{}", data=_wav(RAMP))._replace(**fields)


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
        audio = next(read_clip(row._replace(start_s=start_s, duration_s=duration_s), 3600))
        assert (audio.samples * 32768).tolist() == list(range(first, first + samples))


def test_offset_beyond_raw_samples_is_refused() -> None:
    row = _row(data=b"\0" * 400, sample_rate_hz=8000, start_s=1.0)
    with pytest.raises(AudioError, match=r"row 1: offset must lie within the audio, got 1.0 s in 0.013 s"):
        next(read_clip(row, 3600))


def test_clip_longer_than_allowed_is_refused() -> None:
    with pytest.raises(AudioError, match=r"row 1: must last at most inference.max_clip_s = 0.9 s"):
        next(read_clip(_row(), 0.9))


def test_part_of_a_long_file_may_be_used() -> None:
    assert len(next(read_clip(_row(start_s=0.2, duration_s=0.1), 0.5)).samples) == 1600


def test_error_of_a_file_names_the_row_that_wants_it() -> None:
    row = ClipRow(0, 3, "m.jsonl line 3", "m.jsonl", b"{}", path="/gone.wav")
    with pytest.raises(AudioError, match=r"^m.jsonl line 3: /gone.wav: cannot be read: No such file or directory$"):
        next(read_clip(row, 3600))


def test_sample_that_is_not_finite_names_the_row_and_the_index() -> None:
    samples = np.array([0, 0, np.nan, 0], "<f4")
    with pytest.raises(AudioError, match=r"row 1: samples must be finite .* sample 2 of 4 is nan"):
        next(read_clip(_row(data=samples.tobytes(), sample_rate_hz=16000), 3600))


@pytest.mark.parametrize(
    ("start_s", "duration_s"),
    [(None, None), (0.25, None), (0.25, 0.5), (None, 0.5), (None, 0.995), (None, 0.985), (None, 1.01), (0.0, 0.995)],
)
@pytest.mark.parametrize("block_s", [0.001, 0.1, 0.33, 0.985, 0.5, 1.0, 2.0])
def test_blocks_are_the_whole_in_pieces(start_s: float | None, duration_s: float | None, block_s: float) -> None:
    raw = (RAMP / 32768).astype("<f4").tobytes()
    for row in (_row(), _row(data=raw, sample_rate_hz=16000)):
        row = row._replace(start_s=start_s, duration_s=duration_s)
        (whole,) = read_clip(row, 3600)
        blocks = list(read_clip(row, 3600, block_s))
        np.testing.assert_array_equal(np.concatenate([block.samples for block in blocks]), whole.samples)
        # The last may have the 10 ms more that a rounded duration leaves out.
        assert max(len(block.samples) for block in blocks) <= (block_s + 0.01) * 16000
