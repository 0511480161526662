"""Builds the test delegate with the C compiler, against TFLite's headers from Maven."""

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

ARCHIVE = "tensorflow-lite-2.14.0.aar"
CACHE = Path.home() / ".cache/unison-speech"


@pytest.fixture(scope="session")
def headers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of TFLite's C headers, fetched once into ~/.cache/unison-speech."""
    archive = CACHE / ARCHIVE
    if not archive.is_file():
        if not shutil.which("mvn"):
            pytest.skip(f"no TFLite headers: {archive} is not there and Maven is not installed")
        fetched = tmp_path_factory.mktemp("maven")
        command = ["mvn", "-q", "-B", "dependency:copy", "-Dartifact=org.tensorflow:tensorflow-lite:2.14.0:aar"]
        done = subprocess.run([*command, f"-DoutputDirectory={fetched}"], capture_output=True, text=True, cwd=fetched)
        if done.returncode:
            pytest.skip(f"no TFLite headers: Maven cannot fetch them: {done.stdout.strip()[-300:]}")
        CACHE.mkdir(parents=True, exist_ok=True)
        # Under another name first: a second test process must not see half a file.
        partial = CACHE / f"{ARCHIVE}.{os.getpid()}"
        shutil.copyfile(fetched / ARCHIVE, partial)
        partial.replace(archive)
    folder = tmp_path_factory.mktemp("headers")
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(folder, [name for name in opened.namelist() if name.startswith("headers/")])
    return folder / "headers"


@pytest.fixture(scope="session")
def delegate_library(headers: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shared library of the pretended NPU (test_delegate.c)."""
    if not shutil.which("gcc"):
        pytest.skip("no delegate: gcc is not installed")
    library = tmp_path_factory.mktemp("delegate") / "libtest_delegate.so"
    # No contraction into fused multiply-adds: the delegate's floats are the same on every machine.
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-fPIC", "-shared"]
    source = Path(__file__).with_name("test_delegate.c")
    command = ["gcc", *flags, "-fvisibility=hidden", f"-I{headers}", str(source), "-lm", "-o", str(library)]
    subprocess.run(command, check=True)
    return library
