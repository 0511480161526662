"""Field case B04: the job from an installed package, in another directory, with worker processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _run(*arguments: str, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        arguments, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that a wheel installs (setuptools builds both alike); the checkout is not on its path."""
    folder = tmp_path_factory.mktemp("installed")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        if (ROOT / name).exists():
            (source / name).write_bytes((ROOT / name).read_bytes())
    for package in ("model_runtime", "transforms", "pipelines", "service"):
        (source / package).symlink_to(ROOT / package)
    _run(sys.executable, "setup.py", "-q", "build", "--build-lib", str(folder / "site"), cwd=source)
    return folder / "site"


def test_installed_job_runs_with_two_worker_processes(installed: Path, shared: Path, tmp_path: Path) -> None:
    audio = shared / "field-cases" / "manifest" / "audio"
    where = _run(
        sys.executable, "-c", "import pipelines; print(pipelines.__file__)", cwd=tmp_path, PYTHONPATH=str(installed)
    )
    assert Path(where.strip()).is_relative_to(installed)
    said = _run(
        *(sys.executable, "-m", "pipelines.batch", "--set", f"input={audio}", "--set", f"output={tmp_path / 'out'}"),
        *("--set", "reading.rows_per_slice=1", "--direct_running_mode=multi_processing", "--direct_num_workers=2"),
        cwd=tmp_path,
        PYTHONPATH=str(installed),
    )
    assert said.startswith("rows: 4 = 4 results + 0 errors (0 from earlier runs), audio: 11.6 s, ")
    rows = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_text("utf-8").splitlines()]
    assert [Path(row["audio_filepath"]).name for row in rows] == [
        "[1].wav",
        "a.wav",
        "with space %41.wav",
        "名前 ü.wav",
    ]
    assert len({(row["pred_text"], str(row["words"]), str(row["segments"]), row["error"]) for row in rows}) == 1
