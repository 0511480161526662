"""The options of a job on Flink; what the job does there is tested in tests/flink."""

import logging
from itertools import pairwise

import pytest
from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions, StandardOptions

from model_runtime.errors import ConfigError
from pipelines.command_line import parse_command_line
from pipelines.flink import check_job_server_flags, warn_without_checkpoints, works_elsewhere
from pipelines.local_flink import FLAGS
from pipelines.prism import streaming_options

PORTABLE = "--runner=PortableRunner"


def flags_of_file() -> list[str]:
    return parse_command_line([f"@{FLAGS}"], "job", "A job.").beam_flags


def test_the_file_stands_for_its_options() -> None:
    flags = flags_of_file()
    assert flags[0] == PORTABLE
    assert all(flag.startswith("--") for flag in flags)
    options = streaming_options(flags)
    assert options.view_as(StandardOptions).streaming
    assert options.view_as(PortableOptions).job_endpoint == "127.0.0.1:18099"
    assert works_elsewhere(options)


def test_what_follows_the_file_overrides_it() -> None:
    line = parse_command_line([f"@{FLAGS}", "--job_endpoint=there:1"], "job", "A job.")
    assert PipelineOptions(line.beam_flags).view_as(PortableOptions).job_endpoint == "there:1"


def test_every_option_of_the_file_has_a_comment() -> None:
    lines = FLAGS.read_text().splitlines()
    groups = [before for before, line in pairwise(lines) if line.startswith("--") and not before.startswith("--")]
    assert all(before.startswith("#") for before in groups)


def test_a_job_server_that_is_not_there_is_named_at_once() -> None:
    with pytest.raises(ConfigError, match=r"^job_endpoint: no job server answers at 127\.0\.0\.1:1: "):
        check_job_server_flags([PORTABLE, "--job_endpoint=127.0.0.1:1", "--checkpoint_interval=1"])


def test_without_a_job_server_nobody_is_asked() -> None:
    check_job_server_flags(["--runner=DirectRunner", "--job_endpoint=127.0.0.1:1"])
    check_job_server_flags([PORTABLE])


@pytest.mark.parametrize(
    ("environment", "elsewhere"),
    [([], False), (["--environment_type=LOOPBACK"], False), (["--environment_type=EXTERNAL"], True)],
)
def test_workers_of_an_environment_are_elsewhere_unless_it_is_the_loopback(
    environment: list[str], elsewhere: bool
) -> None:
    assert works_elsewhere(PipelineOptions([PORTABLE, *environment])) is elsewhere


def test_a_stream_without_checkpoints_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        warn_without_checkpoints(flags_of_file())
        assert caplog.messages == []
        warn_without_checkpoints([PORTABLE])
    assert caplog.messages[0].startswith("no --checkpointing_interval is given")
