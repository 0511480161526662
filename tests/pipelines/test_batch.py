"""The batch job as a command: what it writes, what it says, and how it ends. The engine is a stand-in."""

import json
import pickle
import re
from collections.abc import Sequence
from pathlib import Path

import apache_beam as beam
import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest
import soundfile
import yaml
from apache_beam.internal import cloudpickle_pickler

from model_runtime import Audio, Enhanced, Event, Final, MadeBy, ModelError, SpeechEnd, SpeechEngine, Word
from model_runtime.calls import CallTally
from pipelines.batch import BatchConfig, build, main
from pipelines.run_record import read_record
from transforms.records import Answer

ROOT = Path(__file__).resolve().parents[2]


class _Counting:
    """Says how many samples a clip has, and gives them back as the clean audio."""

    def run(self, clips: Sequence[Audio], batch_size: int, tally: CallTally) -> list[list[Event]]:
        return [self._events(clip) for clip in clips]

    def made_by(self) -> MadeBy:
        return MadeBy("counting:1:float32", "cpu")

    def _events(self, clip: Audio) -> list[Event]:
        size = len(clip.samples)
        word = Word(str(size), 0, 1000 * size // clip.sample_rate_hz, 0.5)
        return [
            SpeechEnd(0, 0, size, "stream"),
            Final(0, 0, word.text, (word,), 0.5, 0, size),
            Enhanced(0, clip.samples.astype("<f4").tobytes()),
        ]


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SpeechEngine, "load", lambda *_: _Counting())


def _write_clips(folder: Path, *sizes: int) -> None:
    for size in sizes:
        soundfile.write(folder / f"clip{size}.wav", np.full(size, 0.25), 16000, subtype="PCM_16")


def _run(tmp_path: Path, source: object, *settings: str) -> int:
    # A process of its own would not have the stand-in.
    arguments = [f"input={json.dumps(source)}", f"output={tmp_path / 'out'}", "inference.isolate=false", *settings]
    return main([part for setting in arguments for part in ("--set", setting)])


def _rows(tmp_path: Path, name: str = "results.jsonl") -> list[dict[str, object]]:
    return [json.loads(line) for line in (tmp_path / "out" / name).read_text(encoding="utf-8").splitlines()]


def test_rows_stand_in_the_order_of_the_input(tmp_path: Path) -> None:
    _write_clips(tmp_path, *range(1000, 1040))
    lines = [json.dumps({"audio_filepath": f"clip{size}.wav", "n": size}) for size in range(1039, 999, -1)]
    (tmp_path / "m.jsonl").write_text("\n".join(lines))
    assert _run(tmp_path, str(tmp_path / "m.jsonl"), "reading.rows_per_slice=3", "inference.batch_size=4") == 0
    assert [(row["n"], row["pred_text"]) for row in _rows(tmp_path)] == [(n, str(n)) for n in range(1039, 999, -1)]


def test_good_row_has_its_columns_and_the_answer(tmp_path: Path) -> None:
    _write_clips(tmp_path, 1600)
    manifest = tmp_path / "m.jsonl"
    manifest.write_text('{"audio_filepath": "clip1600.wav", "duration": 9, "text": "x", "tags": {"a": [1, null]}}\n')
    _run(tmp_path, str(manifest))
    assert _rows(tmp_path) == [
        {
            "audio_filepath": "clip1600.wav",
            "duration": 0.1,
            "text": "x",
            "tags": {"a": [1, None]},
            "pred_text": "1600",
            "words": [{"text": "1600", "start_ms": 0, "end_ms": 100, "confidence": 0.5}],
            "segments": [{"start_ms": 0, "end_ms": 100}],
            "model": "counting:1:float32",
            "device": "cpu",
            "answer": "streaming",
            "error": "",
            "error_class": "",
            "error_retriable": False,
            "source_file": str(manifest),
            "source_row": 1,
        }
    ]


def test_bad_rows_are_reported_and_the_job_ends_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write_clips(tmp_path, 1600, 3200)
    (tmp_path / "page.wav").write_text("<!DOCTYPE html>")
    assert _run(tmp_path, str(tmp_path / "*.wav")) == 0
    rows = _rows(tmp_path)
    assert [row["pred_text"] for row in rows] == ["1600", "3200", ""]
    assert rows[2]["error"] == f"{tmp_path}/page.wav: not decodable (Format not recognised.): it is an HTML page"
    assert rows[2]["error_class"] == "AudioError"
    said = capsys.readouterr()
    expected = (
        r"rows: 3 = 2 results \+ 1 errors \(0 from earlier runs\), audio: 0.3 s, wall: \d+.\d s, "
        r"real-time factor: \d+.\d+, devices: cpu \(2 rows\)\n"
    )
    assert re.fullmatch(expected, said.out)
    assert "       1  AudioError: not decodable (Format not recognised.): it is an HTML page\n" in said.err


def test_parquet_results_have_the_rows_of_the_json_lines(tmp_path: Path) -> None:
    _write_clips(tmp_path, 1600, 3200)
    assert _run(tmp_path, str(tmp_path), "results.formats=[jsonl, parquet]") == 0
    assert pq.read_table(tmp_path / "out" / "results.parquet").to_pylist() == _rows(tmp_path)


def test_shards_are_runs_of_the_input_of_equal_length(tmp_path: Path) -> None:
    _write_clips(tmp_path, *range(1000, 1010))
    settings = ("results.shards=2", "reading.rows_per_slice=3", "results.rows_per_part=3")
    assert _run(tmp_path, str(tmp_path), *settings) == 0
    shards = [_rows(tmp_path, f"results-{shard:05d}-of-00002.jsonl") for shard in (0, 1)]
    texts = [[row["pred_text"] for row in shard] for shard in shards]
    assert texts == [[str(size) for size in range(first, first + 5)] for first in (1000, 1005)]


def test_input_without_rows_gives_an_empty_result_file(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text("\n\n")
    assert _run(tmp_path, str(tmp_path / "m.jsonl"), "results.formats=[jsonl, parquet]") == 0
    assert _rows(tmp_path) == []
    assert pq.read_metadata(tmp_path / "out" / "results.parquet").num_rows == 0


def test_clean_audio_is_written_and_named_in_the_row(tmp_path: Path) -> None:
    _write_clips(tmp_path, 1600)
    assert _run(tmp_path, str(tmp_path / "clip1600.wav"), "recipe=enhance", "enhanced.write=true") == 0
    name = str(_rows(tmp_path)[0]["enhanced_filepath"])
    samples, rate_hz = soundfile.read(tmp_path / "out" / name, dtype="int16")
    assert re.fullmatch(r"enhanced/clip1600-[0-9a-f]{12}.wav", name)
    assert (rate_hz, samples.tolist()) == (16000, [8192] * 1600)


def test_subtitles_and_ctm_are_written_on_request(tmp_path: Path) -> None:
    _write_clips(tmp_path, 1600)
    assert _run(tmp_path, str(tmp_path / "clip1600.wav"), "subtitles.formats=[srt]", "results.formats=[ctm, rttm]") == 0
    (path,) = (tmp_path / "out" / "subtitles").iterdir()
    assert path.read_text() == "1\n00:00:00,000 --> 00:00:00,100\n1600\n"
    assert (tmp_path / "out" / "results.ctm").read_text() == "clip1600 1 0.000 0.100 1600 0.5000\n"
    assert (
        tmp_path / "out" / "results.rttm"
    ).read_text() == "SPEAKER clip1600 1 0.000 0.100 <NA> <NA> speech <NA> <NA>\n"


def test_running_twice_replaces_the_results_and_leaves_nothing_else(tmp_path: Path) -> None:
    _write_clips(tmp_path, 1600)
    for _ in range(2):
        assert _run(tmp_path, str(tmp_path / "clip1600.wav")) == 0
    names = [".lock", ".parts", "report.html", "results.jsonl", "results.parquet", "run.json"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    assert len(list((tmp_path / "out" / ".parts").iterdir())) == len(_rows(tmp_path)) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["inference.batch_size=0"], "error: configuration: inference.batch_size must be >= 1, got 0"),
        (["recipe=nothing"], "error: no recipe 'nothing'"),
        (["recipe=segment", "enhanced.write=true"], "error: enhanced.write needs a recipe that emits clean audio"),
        (["answer=best"], "error: configuration: answer must be one of 'streaming', 'accurate', got 'best'"),
        (
            ["recipe=segment", "answer=accurate"],
            "error: answer=accurate needs a recipe with vad and asr, got recipe 'se",
        ),
        (
            ["recipe=wordless.yaml", "answer=accurate"],
            "error: answer=accurate needs words with times: asr.whisper.word_",
        ),
        (
            ["results.formats=[]"],
            "error: configuration: results.formats must name jsonl, parquet, ctm, rttm or several, none twice, got []",
        ),
        (["results.name=../x"], "error: configuration: results.name must be a plain file name, got '../x'"),
    ],
)
def test_wrong_configuration_ends_with_two_and_the_field(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    settings: list[str],
    message: str,
) -> None:
    _write_clips(tmp_path, 1600)
    monkeypatch.chdir(tmp_path)
    whisper = {"model": str(ROOT / "tests" / "model_runtime" / "whisper_toy"), "whisper": {"word_times": False}}
    recipe = {
        "name": "wordless",
        "vad": {"model": "unison-vad"},
        "asr": whisper,
        "endpoint": {"max_utterance_ms": 5000},
    }
    (tmp_path / "wordless.yaml").write_text(yaml.safe_dump(recipe))
    assert _run(tmp_path, str(tmp_path), *settings) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_pattern_without_a_match_ends_with_two_and_the_pattern(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(tmp_path, f"{tmp_path}/*.wav") == 2
    assert f"error: input: '{tmp_path}/*.wav' matches no file" in capsys.readouterr().err


def test_output_that_cannot_be_made_ends_with_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write_clips(tmp_path, 1600)
    (tmp_path / "out").write_text("a file")
    assert _run(tmp_path, str(tmp_path)) == 2
    assert f"error: output: '{tmp_path}/out' cannot be made: Not a directory" in capsys.readouterr().err


def test_unknown_runner_ends_with_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write_clips(tmp_path, 1600)
    assert main(["--set", f"input={tmp_path}", "--set", f"output={tmp_path / 'out'}", "--runner=Walker"]) == 2
    assert "error: Beam refuses its options: Unexpected pipeline runner: Walker." in capsys.readouterr().err


def test_unknown_flag_ends_with_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--inptu=a"]) == 2
    assert "error: --inptu is no option" in capsys.readouterr().err


def test_refused_model_ends_with_one_and_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise ModelError("/m/asr.tflite: is a Git LFS pointer")

    monkeypatch.setattr(SpeechEngine, "load", refuse)
    _write_clips(tmp_path, 1600)
    assert _run(tmp_path, str(tmp_path)) == 1
    assert capsys.readouterr().err.endswith("error: /m/asr.tflite: is a Git LFS pointer\n")


@pytest.mark.parametrize(
    ("recipe", "answer", "more"), [("enhance", "streaming", set()), ("batch", "accurate", {"_CutRowsFn"})]
)
def test_every_step_can_be_pickled_without_opening_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recipe: str, answer: Answer, more: set[str]
) -> None:
    _write_clips(tmp_path, 1600)
    monkeypatch.setattr(SpeechEngine, "load", lambda *_: pytest.fail("opened a model"))
    pipeline = beam.Pipeline()
    build(pipeline, BatchConfig(str(tmp_path), str(tmp_path / "out"), recipe, answer))
    steps: list[beam.DoFn] = []

    class _Collect(beam.pipeline.PipelineVisitor):
        def visit_transform(self, applied: beam.pipeline.AppliedPTransform) -> None:
            if isinstance(applied.transform, beam.ParDo):
                steps.append(applied.transform.fn)

    pipeline.visit(_Collect())
    own = [step for step in steps if type(step).__module__.startswith("transforms.")]
    names = {"_ReadPartFn", "_InferBatchFn", "_CommitPartFn", "_PlanShardsFn", "_WriteShardFn"}
    assert {type(step).__name__ for step in own} == names | more
    assert [type(pickle.loads(pickle.dumps(step))) for step in own] == [type(step) for step in own]
    assert all(cloudpickle_pickler.loads(cloudpickle_pickler.dumps(step)) for step in steps)


def test_shipped_file_names_every_field_with_its_default() -> None:
    raw = yaml.safe_load((ROOT / "configs" / "batch.yaml").read_text(encoding="utf-8"))
    defaults = msgspec.to_builtins(BatchConfig(raw["input"], raw["output"]))
    assert msgspec.to_builtins(raw) == json.loads(json.dumps(defaults))


def test_record_of_a_failed_run_counts_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of four rows: the third one, with a bug in it, ends the run; the first two are not done again."""
    _write_clips(tmp_path, *range(1000, 1012))
    (tmp_path / "clip1001.wav").write_text("<html>")

    def fail(engine: _Counting, clip: Audio) -> list[Event]:
        if len(clip.samples) == 1010:
            raise ZeroDivisionError("a bug")
        return healthy(engine, clip)

    healthy = _Counting._events
    with monkeypatch.context() as patch, pytest.raises(Exception, match="a bug"):
        patch.setattr(_Counting, "_events", fail)
        _run(tmp_path, str(tmp_path / "*.wav"), "inference.batch_size=1")
    record = read_record(tmp_path / "out")
    assert record is not None and (record.state, record.exit_code, record.rows_in) == ("failed", 1, 12)
    assert (record.rows, record.results, record.errors, record.devices) == (8, 7, 1, {"cpu": 7})
    assert record.reasons == {"AudioError: not decodable (Format not recognised.): it is an HTML page": 1}
    assert record.new_audio_s == pytest.approx(sum(n for n in range(1000, 1008) if n != 1001) / 16_000, abs=0.005)
    assert _run(tmp_path, str(tmp_path / "*.wav"), "inference.batch_size=1") == 0
    record = read_record(tmp_path / "out")
    assert record is not None and (record.rows, record.reused, record.message) == (12, 8, "")
