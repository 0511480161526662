"""Fixtures for all tests: where the real speech and the third-party models lie."""

import os
import signal
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def pytest_configure() -> None:
    """Lets a run that is asked to end (by `timeout`, by CI) stop the brokers, jobs and clusters that it has started."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real speech, models and field cases; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("UNISON_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no test data: {folder} is not there (set UNISON_SHARED)")
    return folder
