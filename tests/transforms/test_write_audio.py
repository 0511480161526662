"""Clean audio as files: the samples, and names that never clash and never change."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
import soundfile

from transforms.records import ClipResult
from transforms.row_name import row_name
from transforms.write_audio import EnhancedConfig, write_enhanced

SAMPLES = np.array([0, 1, -32768, 32767], "<i2")


def _result(audio: str = "a.wav", source: str = "/m.jsonl", row: int = 1) -> ClipResult:
    columns = msgspec.json.encode({"audio_filepath": audio} if audio else {})
    answer = ClipResult(0, row, source, columns, "", [], [], 1.0, "m", "cpu", "", "")
    return answer._replace(sample_rate_hz=44100, enhanced=SAMPLES.tobytes())


@pytest.mark.parametrize("form", ["wav", "flac"])
def test_file_holds_the_16_bit_samples_at_the_rate_of_the_clip(tmp_path: Path, form: str) -> None:
    result = write_enhanced(_result(), str(tmp_path), EnhancedConfig(True, "clean", form))  # type: ignore[arg-type]
    path = tmp_path / result.enhanced_path
    samples, rate_hz = soundfile.read(path, dtype="int16")
    assert (samples.tolist(), rate_hz, result.enhanced) == (SAMPLES.tolist(), 44100, None)
    assert (path.parent.name, soundfile.info(path).subtype) == ("clean", "PCM_16")


def test_row_without_clean_audio_writes_nothing(tmp_path: Path) -> None:
    result = _result()._replace(enhanced=None)
    assert write_enhanced(result, str(tmp_path), EnhancedConfig(True)) == result
    assert list(tmp_path.iterdir()) == []


def test_name_is_that_of_the_audio_and_always_the_same() -> None:
    assert row_name(_result("x/Tür 1.wav", "/m.jsonl", 7)) == "Tür 1-709a461e999e"


def test_alias_of_the_path_names_the_file_too() -> None:
    assert row_name(_result()._replace(columns=b'{"audio_filename": "x/b.wav"}')).startswith("b-")


def test_rows_that_share_a_file_name_have_different_names() -> None:
    rows = [_result(), _result(row=2), _result(source="/n.jsonl"), _result("b/a.wav", row=3)]
    assert len({row_name(row) for row in rows}) == 4


@pytest.mark.parametrize(
    ("audio", "stem"),
    [("a:b*?.wav", "a_b__"), ("", "m"), ("/..", ".."), ("ü" * 200 + ".wav", "ü" * 75), (".wav", ".wav")],
)
def test_name_is_one_that_every_file_system_takes(audio: str, stem: str) -> None:
    assert row_name(_result(audio))[:-13] == stem
