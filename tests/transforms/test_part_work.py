"""Parts without Beam: what is taken over, what is done again, and crashes at every write. The engine is a stand-in."""

import json
import os
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import msgspec
import numpy as np
import pytest
import soundfile

from model_runtime.audio import Audio
from model_runtime.calls import CallTally
from model_runtime.devices import RouteConfig
from model_runtime.errors import DeviceError
from model_runtime.records import Enhanced, Event, Final, MadeBy
from transforms.batch_work import BatchWork, EngineRunner
from transforms.clip_inference import InferenceConfig
from transforms.finished_rows import FinishedRows
from transforms.part_file import FOLDER, keep_parts, part_names, read_header, read_part
from transforms.part_work import PartReader, commit_part
from transforms.read_clips import split_sources
from transforms.reading_config import ReadingConfig
from transforms.records import KeyedRow, PartDone, PartRows
from transforms.run_journal import RunJournal
from transforms.sources import find_sources
from transforms.subtitles import SubtitlesConfig
from transforms.work_order import WorkOrder, make_parts
from transforms.write_audio import EnhancedConfig


class _Counting:
    """Answers with the length of a clip, remembers which it had; fails for a while on clips of 666 samples."""

    def __init__(self, failing: bool = False) -> None:
        self.had: list[int] = []
        self.failing = failing

    def run(self, clips: Sequence[Audio], batch_size: int, tally: CallTally) -> list[list[Event]]:
        sizes = [len(clip.samples) for clip in clips]
        if self.failing and 666 in sizes:
            raise DeviceError("the npu is busy")
        self.had += sizes
        return [[Final(0, 0, str(size), (), 1.0, 0, size), Enhanced(0, b"\0" * 4 * size)] for size in sizes]

    def made_by(self) -> MadeBy:
        return MadeBy("counting:1", "cpu")


class _Run:
    """One run over the clips of a folder: parts of two rows, batches of three."""

    def __init__(self, folder: Path, engine: _Counting, **fields: object) -> None:
        order = WorkOrder(
            output=str(folder / "out"),
            recipe="any",
            route=RouteConfig(),
            reading=ReadingConfig(rows_per_slice=2),
            inference=InferenceConfig(retry_wait_s=0, batch_size=1),
            answer="streaming",
            enhanced=EnhancedConfig(),
            subtitles=SubtitlesConfig(),
            fingerprint="f",
            journal=str(folder / "journal"),
            force=False,
            max_errors=1000,
        )
        self.order = msgspec.structs.replace(order, **fields)
        self.parts = make_parts(split_sources(find_sources(str(folder / "*.wav")), 2), 2)
        folder_of_parts = None if self.order.force else self.order.parts_folder
        self.reader = PartReader(self.order, FinishedRows(folder_of_parts))
        self.work = BatchWork(self.order, EngineRunner(engine, self.order))

    def done(self) -> list[PartDone]:
        """Does all parts; a batch is done as soon as it is full, as in the pipeline."""
        finished: dict[int, list[PartRows]] = {}
        hand: list[KeyedRow] = []
        for each in chain.from_iterable(map(self.reader.read, self.parts)):
            if isinstance(each, PartRows):
                finished.setdefault(each.part, []).append(each)
                continue
            hand.append(each)
            if len(hand) == 3:
                self._do(hand, finished)
                hand = []
        self._do(hand, finished)
        return [commit_part(self.order, number, reversed(rows)) for number, rows in sorted(finished.items())]

    def _do(self, batch: list[KeyedRow], finished: dict[int, list[PartRows]]) -> None:
        for each in self.work.do(batch) if batch else ():
            if isinstance(each, PartRows):
                finished.setdefault(each.part, []).append(each)

    def __call__(self) -> list[str]:
        """Does all parts and keeps no other file; gives the texts (or errors) of the rows in the input's order."""
        names = [each.name for each in self.done()]
        keep_parts(self.order.parts_folder, names)
        lines = [line for name in names for line in read_part(self.order.parts_folder, name)]
        return [row["pred_text"] or row["error"] for row in map(json.loads, lines)]


def _write_wav(path: Path, size: int) -> None:
    soundfile.write(path, np.zeros(size), 16000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for size in (500, 501, 666, 503, 504):
        _write_wav(tmp_path / f"{size}.wav", size)
    return tmp_path


def test_second_run_does_nothing_and_keeps_the_parts(folder: Path) -> None:
    texts = _Run(folder, _Counting())()
    names = part_names(folder / "out" / FOLDER)
    engine = _Counting()
    assert _Run(folder, engine)() == texts == ["500", "501", "503", "504", "666"]
    assert (engine.had, part_names(folder / "out" / FOLDER)) == ([], names)
    assert RunJournal(str(folder / "journal")).follow().read().reused == 5


@pytest.mark.parametrize(("change", "had"), [({"force": True}, 5), ({"fingerprint": "g"}, 5), ({"max_errors": 0}, 0)])
def test_force_and_other_models_do_all_anew_and_other_limits_do_not(
    folder: Path, change: dict[str, object], had: int
) -> None:
    _Run(folder, _Counting())()
    engine = _Counting()
    _Run(folder, engine, **change)()
    assert len(engine.had) == had


def test_new_and_changed_files_alone_are_done(folder: Path) -> None:
    """The new file stands first, so every part has other rows than before."""
    _Run(folder, _Counting())()
    _write_wav(folder / "100.wav", 100)
    _write_wav(folder / "503.wav", 777)
    os.utime(folder / "503.wav", ns=(1, 1))
    engine = _Counting()
    assert _Run(folder, engine)() == ["100", "500", "501", "777", "504", "666"]
    assert engine.had == [100, 777]


def test_error_that_may_pass_is_tried_again_by_the_next_run(folder: Path) -> None:
    assert _Run(folder, _Counting(failing=True))()[-1] == "the npu is busy"
    engine = _Counting()
    assert _Run(folder, engine)()[-1] == "666"
    assert engine.had == [666]


def test_error_that_stays_is_not_tried_again(folder: Path) -> None:
    (folder / "500.wav").write_text("<html>")
    assert _Run(folder, _Counting())()[0].endswith("it is an HTML page")
    engine = _Counting()
    assert _Run(folder, engine)()[0].endswith("it is an HTML page")
    assert engine.had == []


def test_row_whose_clean_audio_or_subtitles_are_gone_is_done_again(folder: Path) -> None:
    settings = {"enhanced": EnhancedConfig(True), "subtitles": SubtitlesConfig(("srt",))}
    _Run(folder, _Counting(), **settings)()
    next((folder / "out" / "enhanced").glob("501-*")).unlink()
    next((folder / "out" / "subtitles").glob("666-*")).unlink()
    engine = _Counting()
    _Run(folder, engine, **settings)()
    assert engine.had == [501, 666]


def test_crash_at_any_write_loses_and_doubles_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file appears by os.replace; the n-th one fails, for each n, before or after it took place.

    There are two files of batches and then three of parts.
    """
    right = _Run(folder, _Counting())()
    replace = os.replace
    for crash in range(5):
        for after in (False, True):
            output = str(folder / f"out{crash}{after}")
            count = iter(range(10))

            def failing(source: str, target: str, after: bool = after, count: Iterator[int] = count) -> None:
                crashes = next(count) == crash  # noqa: B023
                if crashes and not after:
                    raise KeyboardInterrupt
                replace(source, target)
                if crashes:
                    raise KeyboardInterrupt

            monkeypatch.setattr(os, "replace", failing)
            first, second = _Counting(), _Counting()
            with pytest.raises(KeyboardInterrupt):
                _Run(folder, first, output=output)()
            monkeypatch.setattr(os, "replace", replace)
            parts = Path(output, FOLDER)
            finished = len({key for name in part_names(parts) for key in read_header(parts, name)[0].keys})
            assert _Run(folder, second, output=output)() == right
            assert (finished, len(second.had)) == (min(5, 3 * (crash + after)), 5 - finished)


def test_no_part_is_begun_once_too_many_rows_are_bad(folder: Path) -> None:
    """The first batch, of the bad rows and one of the second part, says that it is over; that part is still done."""
    for size in (500, 501):
        (folder / f"{size}.wav").write_text("<html>")
    engine = _Counting()
    done = _Run(folder, engine, max_errors=1).done()
    assert [(each.number, each.rows) for each in done] == [(0, 2), (1, 2)]
    assert engine.had == [503, 504]


def test_file_with_just_the_rows_of_a_part_becomes_the_part(folder: Path) -> None:
    for size in (503, 504, 666):
        (folder / f"{size}.wav").unlink()
    _write_wav(folder / "502.wav", 502)
    run = _Run(folder, _Counting())
    run.parts = make_parts(split_sources(find_sources(str(folder / "*.wav")), 2), 3)
    (done,) = run.done()
    assert part_names(run.order.parts_folder) == [done.name]


def test_rows_of_two_lists_that_share_their_segments_have_a_result_each(tmp_path: Path) -> None:
    """Both rows have the same identity and content, and so the same key."""
    _write_wav(tmp_path / "a.wav", 500)
    for name in ("x.scp", "y.scp"):
        (tmp_path / name).write_text("r a.wav\n")
    (tmp_path / "segments").write_text("u r 0 -1\n")
    sources = find_sources([str(tmp_path / "x.scp"), str(tmp_path / "y.scp")])
    for rows_per_part in (2, 1):
        run = _Run(tmp_path, _Counting(), output=str(tmp_path / str(rows_per_part)))
        run.parts = make_parts(split_sources(sources, 2), rows_per_part)
        assert run() == ["500", "500"]
