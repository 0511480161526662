"""What the doctor reports, and with which exit code."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from model_runtime.devices import DelegateConfig, RouteConfig
from model_runtime.doctor import (
    examine_devices,
    examine_file,
    examine_models,
    examine_recipe,
    load_route,
    main,
)
from model_runtime.errors import ConfigError
from model_runtime.tflite import RUNTIME

CARD = """
name: keyword
version: "3"
task: vad
kind: frame_probability
sample_rate_hz: 16000
signature: serving_default
variants: {float32: {vad: silero16k_fp32.tflite}, other: {vad: silero16k_b1_fp32.tflite}}
graphs:
  - role: vad
    inputs: {samples: audio}
    outputs: {speech: speech_prob}
    states: [{input: state_h_in, output: state_h}, {input: state_c_in, output: state_c}]
framing: {block_samples: 512, context_samples: 64}
"""
MISSING = {"npu": DelegateConfig("/none/libnpu.so")}


@pytest.fixture
def recipe(shared: Path, tmp_path: Path) -> Path:
    """A recipe of one vad stage whose model is Silero."""
    model = tmp_path / "models/keyword"
    model.mkdir(parents=True)
    (model / "card.yaml").write_text(CARD)
    for name in ("silero16k_fp32", "silero16k_b1_fp32"):
        (model / f"{name}.tflite").symlink_to(shared / f"data/models/silero/{name}.tflite")
    path = tmp_path / "segment.yaml"
    path.write_text("name: test\nvad: {model: models/keyword}\n")
    return path


def test_each_graph_of_a_recipe_is_reported_with_variant_and_device(recipe: Path) -> None:
    assert [finding.text for finding in examine_recipe(str(recipe), RouteConfig())] == [
        f"{recipe}:",
        "  vad keyword vad: float32 on cpu",
    ]


def test_a_fall_back_is_reported_with_its_reason(recipe: Path) -> None:
    findings = list(examine_recipe(str(recipe), RouteConfig(("npu", "cpu"), MISSING, ("other",))))
    assert findings[1].text == "  vad keyword vad: other on cpu (delegate_missing)"
    assert all(finding.fine for finding in findings)


def test_a_recipe_that_cannot_run_is_not_fine(recipe: Path) -> None:
    route = RouteConfig(("npu",), MISSING, on_failure="refuse")
    (finding,) = examine_recipe(str(recipe), route)
    assert finding == (
        f"{recipe}: cannot run: device 'npu': delegate_missing: no file /none/libnpu.so",
        False,
    )


def test_models_are_reported_with_the_size_of_each_variant(recipe: Path) -> None:
    (finding,) = examine_models(recipe.parent / "models")
    assert finding == ("keyword 3 (vad, frame_probability): float32 1.3 MB, other 1.2 MB", True)


def test_a_broken_card_is_not_fine(recipe: Path) -> None:
    card = recipe.parent / "models/keyword/card.yaml"
    card.write_text(CARD.replace("task: vad", "task: singing"))
    (finding,) = examine_models(recipe.parent / "models")
    assert not finding.fine and "singing" in finding.text


def test_a_model_whose_file_is_missing_is_not_fine(recipe: Path) -> None:
    (recipe.parent / "models/keyword/silero16k_fp32.tflite").unlink()
    (finding,) = examine_models(recipe.parent / "models")
    assert not finding.fine and "No such file" in finding.text


@pytest.mark.parametrize(("on_failure", "fine"), [("fallback", True), ("refuse", False)])
def test_a_missing_device_matters_only_to_a_route_that_refuses(on_failure: str, fine: bool) -> None:
    reports = list(examine_devices(RouteConfig(("npu",), MISSING, on_failure=on_failure)))
    assert reports[1] == ("npu: delegate_missing: no file /none/libnpu.so", fine)


def test_a_file_is_reported_with_the_names_for_a_card(shared: Path) -> None:
    assert [finding.text for finding in examine_file(shared / "data/models/dtln/model_1.tflite")] == [
        "no signature: a card names the tensors themselves",
        "  input input_2: float32 [1, 1, 257]",
        "  input input_3: float32 [1, 2, 128, 2]",
        "  output Identity: float32 [1, 1, 257]",
        "  output Identity_1: float32 [1, 2, 128, 2]",
    ]


def test_a_refused_file_shows_its_tensors_and_the_reason(shared: Path) -> None:
    findings = list(examine_file(shared / "data/models/microwakeword/vad.tflite"))
    assert [finding.text for finding in findings[:3]] == [
        "signature: serving_default",
        "  input input_audio: int8 [1, 3, 40] scale 0.102175 zero -128",
        "  output dense: uint8 [1, 1] scale 0.00390625 zero 0",
    ]
    assert "keeps state in variables inside" in findings[3].text and not findings[3].fine


def test_a_route_is_read_from_a_file_of_its_own_or_from_a_configuration(tmp_path: Path) -> None:
    path = tmp_path / "route.yaml"
    path.write_text("threads: 2\nvariants: [int8]\n")
    assert load_route(path) == RouteConfig(threads=2, variants=("int8",))
    path.write_text("recipe: batch\nroute: {threads: 2, variants: [int8]}\n")
    assert load_route(path) == RouteConfig(threads=2, variants=("int8",))


def test_a_wrong_route_is_refused_with_file_and_field(tmp_path: Path) -> None:
    path = tmp_path / "route.yaml"
    path.write_text("threads: 99\n")
    with pytest.raises(ConfigError, match=r"route\.yaml: Expected `int` <= 64 - at `\$\.threads`"):
        load_route(path)


def test_the_report_names_runtime_devices_models_and_recipes(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--recipe", str(recipe)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == ["Runtimes", "Devices", "Models", "Recipes"]
    assert f"  {RUNTIME.name}: {RUNTIME.version} (in use)" in lines
    assert lines[-1] == "    vad keyword vad: float32 on cpu"


def test_warnings_are_printed_once_and_the_loggers_left_as_they_were(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "route.yaml"
    path.write_text("devices: [npu]\ndelegates: {npu: {library: /none/libnpu.so}}\n")
    assert main(["--route", str(path), "--recipe", str(recipe), "--recipe", str(recipe)]) == 0
    assert capsys.readouterr().out.count("is not run on device 'npu': delegate_missing") == 1
    assert logging.getLogger("model_runtime").propagate


def test_what_cannot_run_is_exit_code_1(shared: Path) -> None:
    assert main(["--file", str(shared / "field-cases/other/lfs_pointer.wav")]) == 1


def test_a_route_that_cannot_be_read_is_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--route", str(tmp_path / "none.yaml")]) == 2
    assert "none.yaml" in capsys.readouterr().err


def test_it_runs_as_a_module(shared: Path) -> None:
    command = [sys.executable, "-m", "model_runtime.doctor", "--file", str(shared / "data/models/dtln/model_2.tflite")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout.count("float32")) == (0, 4)


def test_a_model_that_has_not_been_imported_matters_only_where_its_recipe_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "sentences.yaml"
    recipe.write_text("{name: sentences, asr: {model: whisper-unheard-of}}", encoding="utf-8")
    (finding,) = examine_recipe(str(recipe), RouteConfig(), needed=False)
    assert finding.fine
    assert finding.text.startswith(f"{recipe}: cannot run yet: no model 'whisper-unheard-of'")
    assert finding.text.endswith("deploy/whisper.sh makes it")
    assert main(["--recipe", str(recipe)]) == 1
    assert "cannot run yet" in capsys.readouterr().out
