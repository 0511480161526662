"""The examples for a nightly job: their files are configurations and commands that the job takes."""

import re
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipelines.batch import BatchConfig
from pipelines.batch_run import EXIT_TOO_MANY_ERRORS
from pipelines.command_line import EXIT_CONFIGURATION, parse_command_line
from pipelines.configuration import load_config
from pipelines.run_record import new_record, write_record
from transforms.reading_config import ReadingConfig

NIGHTLY = Path(__file__).resolve().parents[2] / "deploy" / "nightly"


def _objects() -> dict[str, dict[str, Any]]:
    loaded = yaml.safe_load_all((NIGHTLY / "cronjob.yaml").read_text(encoding="utf-8"))
    return {each["kind"]: each for each in loaded}


def _cron_lines() -> list[str]:
    return [line for line in (NIGHTLY / "crontab").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


def test_configuration_is_one_that_the_job_takes() -> None:
    config = load_config(NIGHTLY / "batch.yaml", [], BatchConfig)
    assert (config.max_error_ratio, config.results.shards, config.inference.time_limit_s) == (0.02, 16, 600.0)


def test_cluster_has_the_same_configuration() -> None:
    text = _objects()["ConfigMap"]["data"]["batch.yaml"]
    assert yaml.safe_load(text) == yaml.safe_load((NIGHTLY / "batch.yaml").read_text(encoding="utf-8"))


def test_commands_are_ones_that_the_job_takes() -> None:
    job = _objects()["CronJob"]["spec"]["jobTemplate"]["spec"]
    command = job["template"]["spec"]["containers"][0]["command"]
    cron = shlex.split(_cron_lines()[0])
    at = cron.index("-m")
    for arguments in (command[1:], cron[at:]):
        assert arguments[:2] == ["-m", "pipelines.batch"]
        assert parse_command_line(arguments[2:], "job", "A job.").config == "/etc/unison-speech/batch.yaml"


def test_cluster_does_not_try_again_what_gets_no_better() -> None:
    rules = _objects()["CronJob"]["spec"]["jobTemplate"]["spec"]["podFailurePolicy"]["rules"]
    assert rules[0]["onExitCodes"]["values"] == [EXIT_CONFIGURATION, EXIT_TOO_MANY_ERRORS]


@pytest.mark.parametrize(("state", "says"), [("done", ""), ("failed", "the nightly job: failed\nno disk\n")])
def test_monitor_speaks_up_when_the_last_run_did_not_end_well(tmp_path: Path, state: Any, says: str) -> None:
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    record = new_record("r", ReadingConfig())
    record.end(state, int(state != "done"), time.monotonic())
    record.message = "" if state == "done" else "no disk"
    write_record(record, tmp_path)
    command = re.split(r"\sunison\s", _cron_lines()[1], maxsplit=1)[1].replace("/data/results", str(tmp_path))
    assert subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout == says
