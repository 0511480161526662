"""InferParts on a runner: one engine for a process, counters, steps that can be pickled. The engine is a stand-in."""

import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import apache_beam as beam
import numpy as np
import pytest
import soundfile
from apache_beam.metrics import MetricsFilter
from apache_beam.runners.runner import PipelineResult
from msgspec.structs import replace

from model_runtime import Audio, Event, Final, MadeBy, SpeechEngine
from model_runtime.calls import CallTally
from pipelines.batch import BatchConfig, find_parts, make_inference
from transforms.clip_inference import InferenceConfig
from transforms.clip_workers import end_idle
from transforms.infer_parts import METRICS, InferParts
from transforms.part_file import FOLDER, part_names, read_part
from transforms.reading_config import ReadingConfig
from transforms.records import Part
from transforms.run_journal import RunJournal
from transforms.write_results import ResultsConfig


class _Answering:
    """Answers with the number of samples, and remembers how many clips it had at once."""

    loads = 0
    sizes: ClassVar[list[int]] = []

    def run(self, clips: Sequence[Audio], batch_size: int, tally: CallTally) -> list[list[Event]]:
        self.sizes.append(len(clips))
        return [[Final(0, 0, str(len(clip.samples)), (), 1.0, 0, 1)] for clip in clips]

    def made_by(self) -> MadeBy:
        return MadeBy("answering:1:float32", "npu")


def _load(*_: object) -> _Answering:
    _Answering.loads += 1
    return _Answering()


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BatchConfig:
    """Thirty clips of 800, 808, ... samples at 8 kHz, every tenth of which is no audio."""
    _Answering.loads = 0
    _Answering.sizes.clear()
    monkeypatch.setattr(SpeechEngine, "load", _load)
    for number in range(30):
        path = tmp_path / f"{number:02}.wav"
        soundfile.write(path, np.zeros(800 + 8 * number), 8000)
        if number % 10 == 0:
            path.write_text("<html>")
    (tmp_path / "out" / FOLDER).mkdir(parents=True)
    inference, results = InferenceConfig(isolate=False), ResultsConfig(rows_per_part=16)
    return BatchConfig(str(tmp_path / "*.wav"), str(tmp_path / "out"), inference=inference, results=results)


def _run(parts: list[Part], infer: InferParts) -> PipelineResult:
    pipeline = beam.Pipeline()
    _ = pipeline | beam.Create(parts, reshuffle=False) | infer
    result = pipeline.run()
    result.wait_until_finish()
    return result


def _parts(infer: InferParts) -> list[list[dict[str, Any]]]:
    """The rows of the parts that the run has committed, by the parts' numbers."""
    reader = RunJournal(infer.order.journal).follow()
    reader.read()
    names = [reader.parts[number] for number in sorted(reader.parts)]
    return [[json.loads(line) for line in read_part(infer.order.parts_folder, name)] for name in names]


def _answer(number: int) -> tuple[str, str]:
    return f"{number:02}.wav", str(800 + 8 * number) if number % 10 else ""


def _answers(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(Path(row["audio_filepath"]).name, row["pred_text"]) for row in rows]


def test_every_row_has_its_answer_in_a_part_in_the_order_of_the_input_and_is_counted(config: BatchConfig) -> None:
    parts = find_parts(config)
    infer = make_inference(config, parts)
    found = _run(parts, infer).metrics().query(MetricsFilter().with_namespace(METRICS))["counters"]
    rows = [[_answer(number) for number in numbers] for numbers in (range(16), range(16, 30))]
    assert [_answers(part) for part in _parts(infer)] == rows
    audio_ms = sum(100 + n for n in range(30) if n % 10)
    counters = {each.key.metric.name: each.result for each in found}
    assert counters == {"rows": 30, "errors": 3, "audio_ms": audio_ms, "device/npu": 27}


def test_rows_of_several_parts_come_to_the_engine_in_the_batches_of_batch_elements(config: BatchConfig) -> None:
    """Thirty rows in batches of 16 and 14; each of the three parts of ten has one row that is no audio."""
    config = replace(
        config,
        reading=ReadingConfig(rows_per_slice=5),
        results=ResultsConfig(rows_per_part=10),
        inference=InferenceConfig(isolate=False, batch_size=4),
    )
    parts = find_parts(config)
    assert [part.rows for part in parts] == [10, 10, 10]
    infer = make_inference(config, parts)
    metrics = _run(parts, infer).metrics().query(MetricsFilter().with_namespace("BatchElements"))
    sizes = {each.key.metric.name: each.result for each in metrics["distributions"]}["batch_size"]
    assert (sizes.count, sizes.sum, sizes.min, sizes.max) == (2, 30, 14, 16)
    assert _Answering.sizes == [14, 13]
    assert [row for part in _parts(infer) for row in _answers(part)] == [_answer(number) for number in range(30)]


def test_part_whose_rows_come_in_several_batches_keeps_the_order_of_the_input(config: BatchConfig) -> None:
    config = replace(config, inference=InferenceConfig(isolate=False, batch_size=1), results=ResultsConfig())
    parts = find_parts(config)
    infer = make_inference(config, parts)
    _run(parts, infer)
    # Batches of four; those with row 0, 10 or 20 have one clip less.
    assert _Answering.sizes == [3, 4, 3, 4, 4, 3, 4, 2]
    assert [_answers(part) for part in _parts(infer)] == [[_answer(number) for number in range(30)]]


def test_rows_that_are_finished_do_not_come_to_the_engine_again(config: BatchConfig, tmp_path: Path) -> None:
    for number, sizes in ((0, [27]), (1, []), (2, [2])):
        if number == 2:
            soundfile.write(tmp_path / "10.wav", np.zeros(880), 8000)
            soundfile.write(tmp_path / "11.wav", np.zeros(999), 8000)
        _Answering.sizes.clear()
        parts = find_parts(config)
        infer = make_inference(config, parts)
        RunJournal(infer.order.journal).remove()
        _run(parts, infer)
        assert _Answering.sizes == sizes
    right = [_answer(number) for number in range(30)]
    right[10:12] = [("10.wav", "880"), ("11.wav", "999")]
    assert [row for part in _parts(infer) for row in _answers(part)] == right


def test_engine_is_loaded_once_and_the_launcher_shares_it(config: BatchConfig) -> None:
    parts = find_parts(config)
    infer = make_inference(config, parts)
    infer.load()
    _run(parts, infer)
    assert _Answering.loads == 1


def test_step_can_be_pickled_after_the_launcher_has_loaded_the_engine(config: BatchConfig) -> None:
    infer = make_inference(config, [])
    infer.load()
    assert not hasattr(pickle.loads(pickle.dumps(infer._infer)), "engine")


def test_journal_names_all_parts(config: BatchConfig) -> None:
    parts = find_parts(config)
    infer = make_inference(config, parts)
    _run(parts, infer)
    reader = RunJournal(infer.order.journal).follow()
    done = reader.read()
    assert (done.rows, done.errors, done.reused) == (30, 3, 0)
    assert sorted(reader.parts) == [0, 1]
    # One batch had the rows of both parts; its file goes when the run ends.
    assert len(set(part_names(infer.order.parts_folder)) - set(reader.parts.values())) == 1


def test_allowed_errors_follow_the_ratio_and_the_rows(config: BatchConfig) -> None:
    parts = find_parts(config)
    limits = [make_inference(replace(config, max_error_ratio=ratio), parts).order.max_errors for ratio in (0, 0.1, 1)]
    assert limits == [0, 3, 30]


def test_row_that_kills_the_process_of_the_models_is_an_error_row_of_a_job_that_ends_well(
    config: BatchConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clip of 808 samples dies of a segmentation fault, in a process of its own, and alone."""
    engine = """
import os, signal
from model_runtime.records import Final, MadeBy

class Engine:
    def run(self, clips, batch_size, tally):
        sizes = [len(clip.samples) for clip in clips]
        if 808 in sizes: os.kill(os.getpid(), signal.SIGSEGV)
        return [[Final(0, 0, str(size), (), 1.0, 0, 1)] for size in sizes]

    def made_by(self):
        return MadeBy("killing:1", "cpu")

def load(recipe, route):
    return Engine()
"""
    (tmp_path / "engine_that_kills.py").write_text(engine)
    monkeypatch.syspath_prepend(str(tmp_path))
    config = replace(config, inference=InferenceConfig())
    parts = find_parts(config)
    infer = InferParts(make_inference(config, parts).order, "engine_that_kills:load")
    _run(parts, infer)
    end_idle()
    rows = [row for part in _parts(infer) for row in part]
    errors = {Path(row["audio_filepath"]).stem: row["error"] for row in rows if row["error_class"] == "WorkerError"}
    assert (len(rows), sum(not row["error"] for row in rows)) == (30, 26)
    path = tmp_path / "01.wav"
    assert errors == {"01": f"{path}: the process that worked on it was killed by SIGSEGV, twice"}
    done = RunJournal(infer.order.journal).follow().read()
    assert (done.quarantined, done.restarts) == (1, 2)
