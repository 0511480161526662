"""Tables of an archive: names, growth, and what a replay leaves."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from model_runtime.errors import ConfigError
from transforms.archive_file import FINALS, SESSIONS, ArchiveRow, add_rows, table_path
from transforms.sources import find_sources

BEGIN_MS = 1_700_000_040_000


def final(number: int, event_ms: int = BEGIN_MS, **columns: Any) -> ArchiveRow:
    said = {"result_id": f"s/5/{number}/1", "session": "s", "text": f"text {number}", "words": [], **columns}
    return ArchiveRow(FINALS, False, event_ms, json.dumps(said).encode())


def texts(path: Path) -> list[str]:
    return pq.read_table(path).column("text").to_pylist()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return table_path(tmp_path, FINALS, False, BEGIN_MS, BEGIN_MS + 60_000)


def test_a_windows_file_is_named_after_its_begin_and_length(tmp_path: Path, path: Path) -> None:
    assert path == tmp_path / "finals" / "20231114T221400Z-60s.parquet"
    late = table_path(tmp_path, SESSIONS, True, BEGIN_MS, BEGIN_MS + 600_000)
    assert late == tmp_path / "sessions" / "late-20231114T221400Z-600s.parquet"


def test_firings_of_a_window_add_up_in_the_order_of_time(tmp_path: Path, path: Path) -> None:
    add_rows(tmp_path, path, FINALS, [final(2, BEGIN_MS + 30), final(0, BEGIN_MS + 10)])
    add_rows(tmp_path, path, FINALS, [final(1, BEGIN_MS + 20)])
    assert texts(path) == ["text 0", "text 1", "text 2"]
    ended = pq.read_table(path).column("ended").to_pylist()
    assert ended[0] == datetime(2023, 11, 14, 22, 14, 0, 10_000, tzinfo=timezone.utc)


def test_a_replay_leaves_the_same_bytes(tmp_path: Path, path: Path) -> None:
    add_rows(tmp_path, path, FINALS, [final(0), final(1)])
    before = path.read_bytes()
    add_rows(tmp_path, path, FINALS, [final(1)])
    add_rows(tmp_path, path, FINALS, [final(1), final(0)])
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_row_that_comes_again_with_another_text_takes_the_place_of_the_first(tmp_path: Path, path: Path) -> None:
    add_rows(tmp_path, path, FINALS, [final(0), final(1)])
    add_rows(tmp_path, path, FINALS, [final(0, text="better")])
    assert texts(path) == ["better", "text 1"]


def test_two_that_write_at_the_same_time_lose_no_row(tmp_path: Path, path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: add_rows(tmp_path, path, FINALS, [final(number)]), range(12)))
    assert sorted(texts(path)) == sorted(f"text {number}" for number in range(12))


def test_an_archive_is_read_by_its_sessions_alone(tmp_path: Path) -> None:
    add_rows(tmp_path, table_path(tmp_path, FINALS, False, 0, 60_000), FINALS, [final(0)])
    with pytest.raises(ConfigError, match="holds no session yet"):
        find_sources(str(tmp_path))
    session = ArchiveRow(SESSIONS, False, 5, json.dumps({"result_id": "s/5/-1/end"}).encode())
    tables = [
        table_path(tmp_path, SESSIONS, late, begin, begin + 60_000) for late, begin in ((True, 0), (False, 60_000))
    ]
    for table in tables:
        add_rows(tmp_path, table, SESSIONS, [session])
    (tmp_path / "audio").mkdir()
    (tmp_path / "audio" / "a.flac").write_bytes(b"")
    sources = find_sources(str(tmp_path))
    assert [(source.path, source.kind) for source in sources] == [(str(table), "parquet") for table in sorted(tables)]
