"""Sources into slices into rows."""

import json
import os
from pathlib import Path

from transforms.read_clips import read_slice, split_sources
from transforms.reading_config import ReadingConfig
from transforms.records import AUDIO, MANIFEST, ClipRow, Source


def _rows(sources: list[Source], rows_per_slice: int = 2) -> list[ClipRow]:
    return [row for part in split_sources(sources, rows_per_slice) for row in read_slice(part, ReadingConfig())]


def test_audio_files_travel_in_slices_and_keep_their_identity() -> None:
    sources = [Source(position, f"/{position}.wav", AUDIO) for position in range(5)]
    assert [part.paths for part in split_sources(sources, 2)] == [
        ["/0.wav", "/1.wav"],
        ["/2.wav", "/3.wav"],
        ["/4.wav"],
    ]
    rows = _rows(sources)
    assert [(row.source, row.row, row.path) for row in rows] == [(n, 1, f"/{n}.wav") for n in range(5)]
    assert json.loads(rows[4].columns) == {"audio_filepath": "/4.wav"}


def test_large_file_is_a_slice_of_its_own(tmp_path: Path) -> None:
    """Files with holes: so many bytes, of which none is on the disk."""
    for name, size in (("a", 10), ("b", 10), ("c", 9_000_000), ("d", 9_000_000), ("e", 10), ("f", 10)):
        with open(tmp_path / name, "wb") as file:
            file.truncate(size)
    slices = split_sources([Source(n, str(tmp_path / name), AUDIO) for n, name in enumerate("abcdef")], 16)
    assert ["".join(Path(path).name for path in part.paths) for part in slices] == ["ab", "c", "d", "ef"]
    assert [part.source for part in slices] == [0, 2, 3, 4]


def test_order_of_mixed_sources_is_kept(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text('{"audio_filepath": "x"}\n' * 3)
    sources = [Source(0, "/a.wav", AUDIO), Source(1, str(tmp_path / "m.jsonl"), MANIFEST), Source(2, "/b.wav", AUDIO)]
    assert [(row.source, row.row) for row in _rows(sources)] == [(0, 1), (1, 1), (1, 2), (1, 3), (2, 1)]


def test_file_name_that_is_not_utf8_is_one_bad_row() -> None:
    sources = [Source(0, os.fsdecode(b"/a\xfc.wav"), AUDIO), Source(1, "/b.wav", AUDIO)]
    rows = _rows(sources)
    assert [(row.source, row.error) for row in rows] == [(0, "/a\\xfc.wav: the file name is not UTF-8"), (1, "")]


def test_unreadable_source_is_one_bad_row(tmp_path: Path) -> None:
    (row,) = _rows([Source(4, str(tmp_path / "gone.jsonl"), MANIFEST)])
    assert (row.source, row.row, row.error[-25:]) == (4, 0, "No such file or directory")
