"""The shared command line: whose flag is whose, and that none is silently ignored."""

import pytest

from model_runtime.errors import ConfigError
from pipelines.command_line import CommandLine, parse_command_line


def _parse(*arguments: str) -> CommandLine:
    return parse_command_line(arguments, "job", "A job.")


def test_beam_options_pass_through_in_both_spellings() -> None:
    line = _parse("--config", "a.yaml", "--direct_num_workers=2", "--set", "x=1", "--runner", "DirectRunner")
    assert line == CommandLine("a.yaml", ["x=1"], ["--direct_num_workers=2", "--runner", "DirectRunner"])


@pytest.mark.parametrize("flag", ["--direct_num_worker=2", "--sett", "--in", "stray.yaml"])
def test_unknown_flag_is_refused_by_name(flag: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{flag.partition('=')[0]} is no option"):
        _parse(flag)


def test_wrong_value_of_a_beam_option_is_refused() -> None:
    with pytest.raises(ConfigError, match="--direct_num_workers: invalid int value: 'two'"):
        _parse("--direct_num_workers=two")


def test_options_of_a_job_server_are_left_to_it() -> None:
    assert _parse("--runner=FlinkRunner", "--flink_thing=1").beam_flags == ["--runner=FlinkRunner", "--flink_thing=1"]


def test_flag_without_its_value_exits_with_two() -> None:
    with pytest.raises(SystemExit) as caught:
        _parse("--config")
    assert caught.value.code == 2
