"""The batch job on Flink gives the rows that it gives on this machine, in their order."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.local_flink import LocalFlink

pytestmark = [pytest.mark.flink, pytest.mark.timeout(1200)]

ROOT = Path(__file__).resolve().parents[2]


def run_batch(output: Path, flags: list[str]) -> list[dict[str, object]]:
    settings = [f"input={ROOT / 'samples' / 'manifest.jsonl'}", f"output={output}", "results.formats=[jsonl]"]
    settings += ["report.write=false", "inference.batch_size=2", "results.rows_per_part=3"]
    command = [sys.executable, "-m", "pipelines.batch", *(f"--set={setting}" for setting in settings), *flags]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in (output / "results.jsonl").read_text().splitlines()]


def test_the_rows_are_those_of_a_local_run(flink: LocalFlink, tmp_path: Path) -> None:
    on_flink = ["--runner=PortableRunner", "--environment_type=EXTERNAL", "--parallelism=2", *flink.flags()]
    assert run_batch(tmp_path / "flink", on_flink) == run_batch(tmp_path / "local", [])
