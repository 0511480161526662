"""The job as a nightly command: killed and run again, twice at once, too many errors, and the record that it leaves."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import yaml

from model_runtime.card import load_card
from model_runtime.recipe import PACKAGE_RECIPES
from pipelines.batch import main
from pipelines.run_record import read_record
from transforms.part_file import FOLDER, part_names, read_part
from transforms.run_lock import run_lock

ROOT = Path(__file__).resolve().parents[2]
CLIPS = 60


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    """Sixty clips of noise and, as number 7, a file that is no audio."""
    folder = tmp_path / "in"
    folder.mkdir()
    generator = np.random.default_rng(1)
    for number in range(CLIPS):
        noise = generator.normal(0, 0.1, 16_000 + 800 * number).clip(-1, 1)
        soundfile.write(folder / f"{number:03}.wav", noise, 16_000, subtype="PCM_16")
    (folder / "007.wav").write_text("<!DOCTYPE html>")
    return folder


def _arguments(clips: Path, output: Path, *settings: str) -> list[str]:
    all_settings = (f"input={clips}", f"output={output}", "recipe=segment", "results.formats=[jsonl]", *settings)
    return [part for setting in all_settings for part in ("--set", setting)]


def _rows(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (output / "results.jsonl").read_text(encoding="utf-8").splitlines()]


def _wait(condition: Callable[[], bool], limit_s: float = 120) -> None:
    until = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.02)


def test_killed_job_goes_on_where_it_was(clips: Path, tmp_path: Path) -> None:
    """Batches of four rows in parts of thirty: killed between batches, it repeats none that was finished."""
    small = ("inference.batch_size=1", "reading.rows_per_slice=10", "results.rows_per_part=30")
    assert main(_arguments(clips, tmp_path / "right")) == 0
    output = tmp_path / "out"
    command = [sys.executable, "-m", "pipelines.batch", *_arguments(clips, output, *small)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as job:
        _wait(lambda: len(part_names(output / FOLDER)) >= 3 or job.poll() is not None)
        os.kill(job.pid, signal.SIGKILL)
    finished = _finished_audio_s(output)
    assert 12 <= len(finished) < CLIPS
    assert not (output / "results.jsonl").exists()
    killed = read_record(output)
    assert killed is not None and (killed.state, killed.exit_code) == ("running", None)
    assert main(_arguments(clips, output, *small)) == 0
    record = read_record(output)
    assert record is not None and record.reused == len(finished)
    assert record.new_audio_s == pytest.approx(record.audio_s - sum(finished.values()), abs=1e-6)
    assert len(part_names(output / FOLDER)) == 2
    assert _rows(output) == _rows(tmp_path / "right")


def _finished_audio_s(output: Path) -> dict[str, float]:
    """Seconds of audio of the rows that a killed job has left finished, by their file."""
    folder = output / FOLDER
    rows = [json.loads(line) for name in part_names(folder) for line in read_part(folder, name)]
    assert len({row["audio_filepath"] for row in rows}) == len(rows)
    return {row["audio_filepath"]: row["duration"] or 0.0 for row in rows}


def test_record_says_what_the_run_did(clips: Path, tmp_path: Path) -> None:
    for reused in (0, CLIPS):
        assert main(_arguments(clips, tmp_path / "out")) == 0
        record = read_record(tmp_path / "out")
        assert record is not None
        assert (record.state, record.exit_code, record.reused) == ("done", 0, reused)
        assert (record.rows_in, record.results, record.errors) == (CLIPS, CLIPS - 1, 1)
    assert (record.batch_rows, record.padding_share) == (None, None)
    assert record.reasons == {"AudioError: not decodable (Format not recognised.): it is an HTML page": 1}
    assert (record.new_audio_s, record.real_time_factor) == (0.0, None)
    audio_s = sum(1 + 0.05 * number for number in range(CLIPS) if number != 7)
    assert record.audio_s == pytest.approx(audio_s, abs=1e-6)
    assert record.config["recipe"] == "segment"


def test_rows_that_left_the_input_leave_the_results(clips: Path, tmp_path: Path) -> None:
    assert main(_arguments(clips, tmp_path / "out")) == 0
    for path in clips.glob("0[1-5]*.wav"):
        path.unlink()
    assert main(_arguments(clips, tmp_path / "out")) == 0
    assert [Path(row["audio_filepath"]).stem for row in _rows(tmp_path / "out")] == [f"{n:03}" for n in range(10)]
    assert len(part_names(tmp_path / "out" / FOLDER)) == 1


def test_force_does_all_rows_anew(clips: Path, tmp_path: Path) -> None:
    for switches in ([], ["--force"]):
        assert main([*_arguments(clips, tmp_path / "out"), *switches]) == 0
        record = read_record(tmp_path / "out")
        assert record is not None and record.reused == 0


def test_too_many_errors_end_with_three_and_their_reasons(
    clips: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for number in range(5):
        (clips / f"{number:03}.wav").write_text("version https://git-lfs.github.com/spec/v1\n")
    assert main(_arguments(clips, tmp_path / "out", "max_error_ratio=0.09")) == 3
    said = capfd.readouterr().err
    assert "error: 6 of 60 rows are bad, 5 are allowed\n" in said
    assert "\n       5  AudioError: not decodable (Format not recognised.): it is a Git LFS pointer" in said
    record = read_record(tmp_path / "out")
    assert record is not None and (record.state, record.exit_code) == ("too_many_errors", 3)
    assert main(_arguments(clips, tmp_path / "out", "max_error_ratio=0.1")) == 0


def test_second_run_on_one_output_ends_with_four(
    clips: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    with run_lock(tmp_path / "out" / ".lock", "process 7 on host"):
        assert main(_arguments(clips, tmp_path / "out")) == 4
    message = f"error: {tmp_path / 'out'}: another run is writing there (process 7 on host)"
    assert message in capfd.readouterr().err
    assert read_record(tmp_path / "out") is None


def test_failed_run_is_recorded_with_its_reason(clips: Path, tmp_path: Path) -> None:
    route = ("route.devices=[npu]", "route.delegates={npu: {library: /gone.so}}", "route.on_failure=refuse")
    assert main(_arguments(clips, tmp_path / "out", *route)) == 1
    record = read_record(tmp_path / "out")
    assert record is not None and (record.state, record.exit_code) == ("failed", 1)
    assert record.message.startswith("DeviceError: ")


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS"), (b"", "empty")],
)
def test_model_that_is_no_model_is_refused_once_with_its_path(
    clips: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], content: bytes, reason: str
) -> None:
    """Field case T07; the models are loaded in a process of their own."""
    recipe = yaml.safe_load((PACKAGE_RECIPES / "segment.yaml").read_text(encoding="utf-8"))
    shutil.copytree(load_card(recipe["vad"]["model"]).folder, tmp_path / "model")
    (model,) = (tmp_path / "model").glob("*float32*.tflite")
    model.write_bytes(content)
    recipe["vad"]["model"] = "./model"
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    assert main(_arguments(clips, tmp_path / "out", f"recipe={tmp_path}/recipe.yaml")) == 1
    (line,) = (line for line in capfd.readouterr().err.splitlines() if line.startswith("error: "))
    assert str(model) in line and reason in line
