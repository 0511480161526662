"""The field cases: files that broke other products, and one run of the batch job over all of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.batch import main

Row = dict[str, Any]


@pytest.fixture(scope="session")
def cases(shared: Path) -> Path:
    """The folder of the field cases."""
    return shared / "field-cases"


@pytest.fixture(scope="session")
def oracle(cases: Path) -> dict[str, dict[str, Any]]:
    """What is right for every file: expected.json."""
    loaded: dict[str, dict[str, Any]] = json.loads((cases / "expected.json").read_text(encoding="utf-8"))
    return loaded


@pytest.fixture(scope="session")
def run_job(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[Row]]:
    """Runs the batch job with its real engine from another working directory, and gives the rows of its results."""

    def run(*inputs: Path, settings: tuple[str, ...] = ()) -> list[Row]:
        output = tmp_path_factory.mktemp("job")
        values = [f"input={json.dumps([str(path) for path in inputs])}", f"output={output}", *settings]
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(output)
            assert main([part for value in values for part in ("--set", value)]) == 0
        return [json.loads(line) for line in (output / "results.jsonl").read_text(encoding="utf-8").splitlines()]

    return run


@pytest.fixture(scope="session")
def wav_rows(cases: Path, run_job: Callable[..., list[Row]]) -> dict[str, Row]:
    """The result of every audio file of the field cases, by file name, all out of one job."""
    rows = run_job(cases / "wav" / "*.wav", cases / "other" / "*.wav")
    return {Path(row["audio_filepath"]).name: row for row in rows}
