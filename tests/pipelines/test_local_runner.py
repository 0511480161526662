"""The runner of bounded jobs on this machine."""

from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner
from apache_beam.runners.portability.prism_runner import PrismRunner

from pipelines.batch import main
from pipelines.local_runner import is_local, local_runner, worker_count

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("flags", "local"),
    [
        ([], True),
        (["--runner=DirectRunner"], True),
        (["--runner=PrismRunner"], False),
        (["--runner=FlinkRunner"], False),
    ],
)
def test_only_beams_own_runner_is_local(flags: list[str], local: bool) -> None:
    assert is_local(PipelineOptions(flags)) == local


def test_the_runner_tells_its_workers_the_options() -> None:
    runner = local_runner(PipelineOptions(["--direct_num_workers=3"]))
    assert isinstance(runner, FnApiRunner)
    assert runner._provision_info.provision_info.pipeline_options["beam:option:direct_num_workers:v1"] == "3"


def test_workers_are_those_of_the_options() -> None:
    assert worker_count(PipelineOptions(["--direct_num_workers=3"])) == 3


def test_a_job_on_this_machine_never_looks_for_prism(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(PrismRunner, "run_pipeline", lambda self, *_: asked.append(self))
    settings = [f"input={ROOT}/samples/lights.wav", f"output={tmp_path}", "recipe=segment", "inference.isolate=false"]
    assert main([part for setting in settings for part in ("--set", setting)]) == 0
    assert asked == []
