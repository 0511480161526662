"""Which TFLite runtime is used, and what is said when there is none."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from model_runtime import tflite


def refuse(monkeypatch: pytest.MonkeyPatch, versions: dict[str, str]) -> None:
    def version(name: str) -> str:
        if name not in versions:
            raise importlib.metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(importlib.metadata, "version", version)


def test_the_runtime_in_use_is_told_with_its_installed_version() -> None:
    assert tflite.RUNTIME.name in ("ai-edge-litert", "tflite-runtime")
    assert tflite.RUNTIME.version == importlib.metadata.version(tflite.RUNTIME.name)


def test_without_a_runtime_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, {})
    with pytest.raises(ImportError) as caught:
        tflite._import_runtime("")
    assert str(caught.value) == (
        "no TFLite runtime can be used (ai-edge-litert is not installed; tflite-runtime is not installed): "
        "install unison-speech[litert] or unison-speech[tflite-runtime]"
    )


def test_the_old_runtime_is_not_imported_under_numpy_2(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, {"tflite-runtime": "2.14.0"})
    monkeypatch.setattr(np, "__version__", "2.4.6")
    with pytest.raises(ImportError, match=r"tflite-runtime 2\.14\.0 needs numpy<2, found numpy 2\.4\.6"):
        tflite._import_runtime("tflite-runtime")


def test_a_runtime_whose_module_does_not_import_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, {"ai-edge-litert": "9.9"})
    monkeypatch.setitem(tflite._MODULES, "ai-edge-litert", "no_such_module_of_litert")
    with pytest.raises(ImportError, match=r"ai-edge-litert 9\.9 does not import: No module named"):
        tflite._import_runtime("ai-edge-litert")


def test_an_unknown_name_in_the_environment_is_refused() -> None:
    environment = {**os.environ, "UNISON_TFLITE_RUNTIME": "tensorflow"}
    done = subprocess.run(
        [sys.executable, "-c", "import model_runtime.tflite"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "UNISON_TFLITE_RUNTIME must be one of ['ai-edge-litert', 'tflite-runtime'], got 'tensorflow'" in done.stderr


def test_the_environment_can_name_the_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tflite._import_runtime(tflite.RUNTIME.name)[1] == tflite.RUNTIME


def test_an_interpreter_comes_resized_and_allocated(shared: Path) -> None:
    path = shared / "data/models/mlcommons/kws_ref_model.tflite"
    interpreter = tflite.make_interpreter(path, 1, [(0, (4, 49, 10, 1))])
    interpreter.invoke()
    assert interpreter.get_tensor(34).shape == (4, 12)
