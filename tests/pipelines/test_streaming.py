"""The streaming job's command line and configuration; what it says is tested in tests/streaming."""

import pickle
from itertools import pairwise
from pathlib import Path

import apache_beam as beam
import pytest
import yaml
from apache_beam.options.pipeline_options import (
    DebugOptions,
    PipelineOptions,
    PortableOptions,
    PrismRunnerOptions,
    StandardOptions,
    WorkerOptions,
)
from apache_beam.pipeline import PipelineVisitor

from pipelines.configuration import load_config
from pipelines.prism import streaming_options
from pipelines.streaming import StreamingConfig, build, main
from transforms import kafka_topics
from transforms.kafka_config import KafkaConfig

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "configs" / "streaming.yaml"


def fields(value: object) -> object:
    """The names of all fields, nested."""
    return {name: fields(inner) for name, inner in value.items()} if isinstance(value, dict) else None


def test_the_file_shows_every_field_with_its_default() -> None:
    assert load_config(FILE, [], StreamingConfig) == StreamingConfig()
    shown = yaml.safe_load(FILE.read_text())
    for name, struct in (("kafka", KafkaConfig()), ("session", StreamingConfig().session)):
        assert list(shown[name]) == list(struct.__struct_fields__)
    assert list(shown) == list(StreamingConfig().__struct_fields__)


def test_every_field_of_the_file_has_a_comment() -> None:
    lines = FILE.read_text().splitlines()
    bare = [line for before, line in pairwise(lines) if ":" in line and "#" not in before + line]
    assert bare == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "kafka.poll_round_ms=0"], "kafka.poll_round_ms must be >= 1, got 0"),
        (["--set", "kafka.start=middle"], "kafka.start must be one of 'earliest', 'latest', got 'middle'"),
        (["--set", "session.idle=5"], "session.idle is no field"),
        (["--set", "recipe=shouting"], "no recipe 'shouting'"),
        (["--set", "recipe=segment", "--set", "results.enhanced=true"], "results.enhanced needs a recipe that emits"),
        (["--set", "kafka.bootstrap_servers=127.0.0.1:1"], "kafka.bootstrap_servers: no broker answers at 127.0.0.1:1"),
        (["--config", "no/such/file.yaml"], "no/such/file.yaml"),
        (["--streeming"], "--streeming is no option"),
    ],
)
def test_what_is_wrong_is_named_before_the_job_starts(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_topics, "_TIMEOUT_MS", 500)
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_the_options_of_a_stream(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UNISON_CACHE", str(tmp_path))
    options = streaming_options(["--runner=DirectRunner"])
    assert options.view_as(StandardOptions).streaming
    assert options.view_as(StandardOptions).runner == "PrismRunner"
    assert options.view_as(PortableOptions).job_server_timeout > 10**8
    assert options.view_as(DebugOptions).experiments == ["prism_disable_sdf_split"]
    assert options.view_as(PrismRunnerOptions).prism_location is None
    assert options.view_as(WorkerOptions).max_cache_memory_usage_mb == 100
    other = streaming_options(["--runner=DirectRunner", "--max_cache_memory_usage_mb=7"])
    assert other.view_as(WorkerOptions).max_cache_memory_usage_mb == 7


def test_other_runners_are_left_alone() -> None:
    assert streaming_options(["--runner=FlinkRunner"]).view_as(StandardOptions).runner == "FlinkRunner"


def test_the_prism_that_has_been_built_is_found_unless_another_one_is_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("UNISON_CACHE", str(tmp_path))
    built = tmp_path / f"prism-{beam.__version__}-mended-2" / "prism"
    built.parent.mkdir()
    built.touch()
    assert streaming_options([]).view_as(PrismRunnerOptions).prism_location == str(built)
    given = streaming_options(["--prism_location=/opt/prism"])
    assert given.view_as(PrismRunnerOptions).prism_location == "/opt/prism"


def test_the_job_is_built_and_pickled_without_models_and_brokers() -> None:
    config = load_config(None, ["results.enhanced=true", "kafka.bootstrap_servers=nowhere:1"], StreamingConfig)
    pipeline = beam.Pipeline(options=PipelineOptions([]))
    build(pipeline, config)
    names: list[str] = []

    class Pickler(PipelineVisitor):
        def visit_transform(self, applied: beam.pipeline.AppliedPTransform) -> None:
            if isinstance(applied.transform, beam.ParDo):
                names.append(applied.full_label)
                beam.internal.pickler.loads(beam.internal.pickler.dumps(applied.transform.fn))

    pipeline.visit(Pickler())
    assert any(name.startswith("InferSessions/Infer") for name in names)
    assert sum(name.endswith("/Send") for name in names) == 3
    assert pickle.loads(pickle.dumps(config)) == config
