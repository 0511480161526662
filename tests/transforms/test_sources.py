"""Which files an input means."""

from pathlib import Path

import pytest

from model_runtime.errors import ConfigError
from transforms.records import AUDIO, MANIFEST, PARQUET
from transforms.sources import find_sources


def _touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")


def _names(*inputs: object) -> list[str]:
    return [Path(source.path).name for source in find_sources([str(each) for each in inputs])]


def test_glob_gives_its_files_by_name(tmp_path: Path) -> None:
    _touch(tmp_path, "b.wav", "a.wav", "c.mp3")
    assert _names(tmp_path / "*.wav") == ["a.wav", "b.wav"]


def test_name_with_glob_characters_is_a_file_name(tmp_path: Path) -> None:
    _touch(tmp_path, "[1].wav", "1.wav", "what?.wav")
    assert _names(tmp_path / "[1].wav") == ["[1].wav"]


def test_folder_gives_all_audio_below_it_but_nothing_hidden(tmp_path: Path) -> None:
    _touch(tmp_path, "x/b.WAV", "a.flac", "notes.txt", ".a.wav", "m.jsonl")
    assert _names(tmp_path) == ["a.flac", "b.WAV"]


def test_two_stars_go_through_folders(tmp_path: Path) -> None:
    _touch(tmp_path, "a.wav", "x/y/b.wav")
    assert _names(tmp_path / "**" / "*.wav") == ["a.wav", "b.wav"]


def test_inputs_keep_their_order_and_a_file_is_read_once(tmp_path: Path) -> None:
    _touch(tmp_path, "a.wav", "b.wav")
    assert _names(tmp_path / "b.wav", tmp_path / "*.wav") == ["b.wav", "a.wav"]


def test_ending_says_the_kind(tmp_path: Path) -> None:
    _touch(tmp_path, "a.JSONL", "b.parquet", "c.ogg")
    assert [source.kind for source in find_sources(str(tmp_path / "*"))] == [MANIFEST, PARQUET, AUDIO]


@pytest.mark.parametrize(
    ("head", "kind"), [(b"PAR1", PARQUET), (b'\xef\xbb\xbf {"a', MANIFEST), (b"RIFF", AUDIO), (b"", AUDIO)]
)
def test_first_bytes_say_the_kind_of_a_file_without_a_known_ending(tmp_path: Path, head: bytes, kind: str) -> None:
    (tmp_path / "0123abcd").write_bytes(head)
    assert find_sources(str(tmp_path / "0123abcd"))[0].kind == kind


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ("/nowhere/*.wav", "input: '/nowhere/.*.wav' matches no file"),
        ("/nowhere/a.wav", "input: '/nowhere/a.wav' does not exist"),
        ("", "empty string"),
        ([], "got none"),
    ],
)
def test_input_without_a_file_is_refused(inputs: str | list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        find_sources(inputs)


def test_folder_without_audio_is_refused(tmp_path: Path) -> None:
    _touch(tmp_path, "m.jsonl")
    with pytest.raises(ConfigError, match="no audio file in folder"):
        find_sources(str(tmp_path))
