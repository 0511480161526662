"""TFLiteModelHandler behind RunInference, with the packaged models: what it says is what the engine says."""

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.metrics import MetricsFilter
from apache_beam.ml.inference.base import KeyedModelHandler, ModelHandler, PredictionResult, RunInference
from apache_beam.options.pipeline_options import PipelineOptions

from model_runtime import Audio, ConfigError, DelegateConfig, DeviceError, RouteConfig, SpeechEngine
from model_runtime.decode import decode_file
from transforms.clip_inference import InferenceConfig
from transforms.heard_clip import HeardClip
from transforms.records import ClipResult, ClipRow
from transforms.tflite_model_handler import METRICS, TFLiteModelHandler

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(map(str, (ROOT / "samples").glob("*.wav")))[:4]


@pytest.fixture(scope="module")
def expected() -> list[ClipResult]:
    """What the engine says about FILES, one after the other."""
    engine = SpeechEngine.load("batch")
    rows = [ClipRow(0, 0, file, file, b"{}", path=file) for file in FILES]
    results = []
    for row, clip in zip(rows, map(decode_file, FILES), strict=True):
        heard = HeardClip(row, clip.sample_rate_hz)
        heard.take(engine.run([clip], batch_size=1)[0])
        results.append(heard.result(len(clip.samples), engine.made_by()))
    return results


@pytest.fixture
def infer(tmp_path: Path) -> Callable[..., list[Any]]:
    """Runs examples through RunInference and gives what comes out."""

    def run(handler: ModelHandler, examples: Sequence[object], options: Sequence[str] = ()) -> list[Any]:
        with beam.Pipeline(options=PipelineOptions([*options])) as pipeline:
            out = pipeline | beam.Create(examples, reshuffle=False) | RunInference(handler)
            out | beam.Map(pickle.dumps) | beam.Map(_write, str(tmp_path / "out"))
        return [pickle.loads(path.read_bytes()) for path in (tmp_path / "out").iterdir()]

    (tmp_path / "out").mkdir()
    return run


def _write(data: bytes, folder: str) -> None:
    from uuid import uuid4

    Path(folder, uuid4().hex).write_bytes(data)


def said(result: ClipResult) -> tuple[object, ...]:
    return result.pred_text, result.words, result.segments, result.duration_s, result.model, result.device


def test_results_are_those_of_the_engine_for_every_kind_of_example(
    infer: Callable[..., list[Any]], expected: list[ClipResult]
) -> None:
    audio = [decode_file(file) for file in FILES]
    assert audio[1].sample_rate_hz == 16_000
    row = ClipRow(7, 8, "row", "m.jsonl", b'{"n": 1}', path=FILES[2])
    examples = {0: FILES[0], 1: audio[1].samples, 2: row, 3: audio[3]}
    found = dict(infer(KeyedModelHandler(TFLiteModelHandler(recipe="batch")), list(examples.items())))
    assert {key: said(prediction.inference) for key, prediction in found.items()} == dict(
        enumerate(map(said, expected))
    )
    assert (found[2].example, found[2].inference.source, found[2].inference.row) == (row, 7, 8)
    assert (found[2].inference.columns, found[2].model_id) == (b'{"n": 1}', expected[2].model)


def test_examples_without_keys_come_back_with_their_results(
    infer: Callable[..., list[Any]], expected: list[ClipResult]
) -> None:
    found = infer(TFLiteModelHandler(recipe="batch"), FILES[:2])
    assert {type(prediction) for prediction in found} == {PredictionResult}
    assert {p.example: p.inference for p in found} == dict(zip(FILES[:2], expected, strict=False))


def test_bad_clips_have_errors_and_their_neighbours_answers(
    infer: Callable[..., list[Any]], expected: list[ClipResult]
) -> None:
    bad = {
        "missing": "no/such.wav",
        "integers": np.zeros(100, np.int16),
        "nan": Audio(np.full(100, np.nan, np.float32), 16_000),
        "rate": Audio(np.zeros(100, np.float32), 7),
    }
    found = dict(infer(KeyedModelHandler(TFLiteModelHandler(recipe="batch")), [*bad.items(), ("good", FILES[0])]))
    assert {key: prediction.inference.error_class for key, prediction in found.items()} == {
        **dict.fromkeys(bad, "AudioError"),
        "good": "",
    }
    assert found["good"].inference == expected[0]
    assert found["rate"].inference.error == "sample_rate_hz must be 8000..192000, got 7"


@pytest.mark.parametrize("copies", [{"large_model": True}, {"model_copies": 2}])
def test_processes_can_share_the_models(
    infer: Callable[..., list[Any]], expected: list[ClipResult], copies: dict[str, Any]
) -> None:
    workers = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    handler = KeyedModelHandler(TFLiteModelHandler(recipe="batch", **copies))
    assert handler.share_model_across_processes()
    found = dict(infer(handler, list(enumerate(FILES)), workers))
    assert {key: prediction.inference for key, prediction in found.items()} == dict(enumerate(expected))


@pytest.mark.parametrize("card", ["unison-denoise", "unison-vad", "unison-asr-stream", "unison-asr-transducer"])
def test_any_card_runs_alone(card: str) -> None:
    model = TFLiteModelHandler(card, keep_enhanced=True).load_model()
    audio = decode_file(FILES[0])
    (result,) = model.run([audio])
    assert result.error == ""
    assert result.model.startswith(f"{card}:")
    heard = {"denoise": len(result.enhanced or b"") == 2 * len(audio.samples), "vad": bool(result.segments)}
    assert heard.get(card.split("-")[1], bool(result.pred_text))


def test_a_device_that_is_refused_is_refused_at_load() -> None:
    delegates = {"npu": DelegateConfig("no-such-library.so")}
    route = RouteConfig(devices=("npu",), delegates=delegates, on_failure="refuse")
    with pytest.raises(DeviceError, match=r"no-such-library\.so"):
        TFLiteModelHandler("unison-vad", route=route).load_model()


def test_batches_are_those_of_the_batch_job_unless_sizes_are_given() -> None:
    handler = TFLiteModelHandler("unison-vad", inference=InferenceConfig(batch_size=8, max_batch_s=80.0))
    kwargs = handler.batch_elements_kwargs()
    assert (kwargs["min_batch_size"], kwargs["max_batch_size"]) == (32, 32)
    minute = Audio(np.zeros(16_000 * 60, np.float32), 16_000)
    weigh = kwargs["element_size_fn"]
    assert [weigh(each) for each in (minute, ("key", minute), minute.samples, "a.wav")] == [7, 7, 7, 1]
    assert TFLiteModelHandler("unison-vad", max_batch_size=5).batch_elements_kwargs() == {"max_batch_size": 5}


def test_bytes_are_those_of_the_audio_in_memory() -> None:
    samples = np.zeros(100, np.float32)
    row = ClipRow(0, 0, "", "", b"", data=b"12345")
    assert TFLiteModelHandler("unison-vad").get_num_bytes([samples, Audio(samples, 8000), row, "a.wav"]) == 805


def test_metrics_have_a_namespace_of_their_own() -> None:
    pipeline = beam.Pipeline()
    pipeline | beam.Create(FILES[:2]) | RunInference(TFLiteModelHandler("unison-vad"))
    result = pipeline.run()
    result.wait_until_finish()
    (found,) = result.metrics().query(MetricsFilter().with_namespace(METRICS).with_name("num_inferences"))["counters"]
    assert found.committed == 2


def test_wrong_arguments_are_refused() -> None:
    for arguments in ({}, {"card": "unison-vad", "recipe": "batch"}):
        with pytest.raises(ConfigError, match="either a card or a recipe"):
            TFLiteModelHandler(**arguments)
    with pytest.raises(ConfigError, match=r"inference_args must be empty .* \['beam'\]"):
        TFLiteModelHandler("unison-vad").validate_inference_args({"beam": 4})


def test_a_refresh_takes_another_model() -> None:
    handler = TFLiteModelHandler("unison-vad")
    handler.update_model_path("unison-denoise")
    (result,) = handler.load_model().run([np.zeros(1600, np.float32)])
    assert result.model == "unison-denoise:1:float32"
