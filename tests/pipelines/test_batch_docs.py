"""The commands of docs/batch.md do what they say. The engine is a stand-in."""

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile

from model_runtime import Audio, Event, MadeBy, SpeechEngine
from model_runtime.calls import CallTally
from pipelines import evaluate
from pipelines.batch import BatchConfig, main
from pipelines.configuration import load_config

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "batch.md").read_text(encoding="utf-8")
COMMANDS = [
    line
    for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
    for line in block.splitlines()
    if "pipelines.batch" in line
]
EVALUATE = re.findall(r"^python -m pipelines.evaluate .*$", TEXT, re.MULTILINE)
# Worker processes do not have the stand-in; test_batch_installed.py runs them. tests/streaming has a broker, and
# tests/flink a job server.
ELSEWHERE = ("multi_processing", "kafka:", "PortableRunner")
IN_PROCESS = [command for command in COMMANDS if not any(part in command for part in ELSEWHERE)]


class _Silent:
    def run(self, clips: Sequence[Audio], batch_size: int, tally: CallTally) -> list[list[Event]]:
        return [[] for _ in clips]

    def made_by(self) -> MadeBy:
        return MadeBy("silent:1:float32", "cpu")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the files that the commands name."""
    monkeypatch.setattr(SpeechEngine, "load", lambda *_: _Silent())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "calls").mkdir()
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    soundfile.write(tmp_path / "calls" / "a.wav", np.zeros(1600), 16000)
    (tmp_path / "manifest.jsonl").write_text(json.dumps({"audio_filepath": "calls/a.wav"}))
    pq.write_table(pa.table({"audio": ["calls/a.wav"]}), tmp_path / "train.parquet")
    return tmp_path


def test_the_page_has_commands() -> None:
    assert (len(COMMANDS), len(IN_PROCESS)) == (9, 6)


@pytest.mark.parametrize("command", IN_PROCESS)
def test_command_ends_well_and_writes_results(folder: Path, command: str) -> None:
    python, dash_m, module, *arguments = shlex.split(command)
    assert (python, dash_m, module) == ("python", "-m", "pipelines.batch")
    # A process of its own would not have the stand-in.
    assert main([*arguments, "--set", "inference.isolate=false"]) == 0
    rows = [json.loads(line) for line in (folder / "out" / "results.jsonl").read_text().splitlines()]
    assert {(row["error"], row["duration"]) for row in rows} == {("", 0.1)}


def test_measuring_commands_end_well(folder: Path) -> None:
    pytest.importorskip("jiwer")
    assert main(["--set", "input=calls", "--set", "output=out", "--set", "inference.isolate=false"]) == 0
    (folder / "streaming.jsonl").write_bytes((folder / "out" / "results.jsonl").read_bytes())
    assert [evaluate.main(shlex.split(command)[3:]) for command in EVALUATE] == [0, 0]


def test_every_field_that_the_page_names_is_one() -> None:
    for group, field in set(re.findall(r"`(reading|inference|results|enhanced|subtitles)\.([a-z_]+)`", TEXT)):
        config = load_config(None, ["input=a", "output=b"], BatchConfig)
        assert hasattr(getattr(config, group), field), f"{group}.{field}"
