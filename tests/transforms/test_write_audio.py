"""Clean audio as files: the samples, and names that never clash and never change."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
import soundfile

from transforms.records import ClipRow
from transforms.row_name import row_name
from transforms.write_audio import CleanFile, CleanFolder, EnhancedConfig

# 2.0 is clipped, never wrapped.
CLEAN = np.array([0, 1 / 32768, -1, 2], np.float32)


def _row(audio: str = "a.wav", source: str = "/m.jsonl", row: int = 1) -> ClipRow:
    columns = msgspec.json.encode({"audio_filepath": audio} if audio else {})
    return ClipRow(0, row, "a row", source, columns)


@pytest.mark.parametrize("form", ["wav", "flac"])
def test_file_holds_the_16_bit_samples_at_the_rate_of_the_clip_however_they_come(tmp_path: Path, form: str) -> None:
    file = CleanFile(_row(), 44100, CleanFolder(str(tmp_path), EnhancedConfig(True, "clean", form)))  # type: ignore[arg-type]
    for part in (CLEAN[:1], CLEAN[:0], CLEAN[1:]):
        file.write(part)
    assert [path for path in tmp_path.rglob("*.*") if not path.name.startswith(".")] == []
    path = tmp_path / file.keep().path
    samples, rate_hz = soundfile.read(path, dtype="int16")
    assert (samples.tolist(), rate_hz) == ([0, 1, -32768, 32767], 44100)
    assert (path.parent.name, soundfile.info(path).subtype) == ("clean", "PCM_16")


def test_file_that_is_discarded_leaves_nothing(tmp_path: Path) -> None:
    file = CleanFile(_row(), 8000, CleanFolder(str(tmp_path), EnhancedConfig(True)))
    file.write(CLEAN)
    file.discard()
    assert list((tmp_path / "enhanced").iterdir()) == []


def test_name_is_that_of_the_audio_and_always_the_same() -> None:
    assert row_name(_row("x/Tür 1.wav", "/m.jsonl", 7)) == "Tür 1-709a461e999e"


def test_alias_of_the_path_names_the_file_too() -> None:
    assert row_name(_row()._replace(columns=b'{"audio_filename": "x/b.wav"}')).startswith("b-")


def test_rows_that_share_a_file_name_have_different_names() -> None:
    rows = [_row(), _row(row=2), _row(source="/n.jsonl"), _row("b/a.wav", row=3)]
    assert len({row_name(row) for row in rows}) == 4


@pytest.mark.parametrize(
    ("audio", "stem"),
    [("a:b*?.wav", "a_b__"), ("", "m"), ("/..", ".."), ("ü" * 200 + ".wav", "ü" * 75), (".wav", ".wav")],
)
def test_name_is_one_that_every_file_system_takes(audio: str, stem: str) -> None:
    assert row_name(_row(audio))[:-13] == stem
