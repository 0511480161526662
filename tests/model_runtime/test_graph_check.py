"""Refusals of files that can be read but must not be run."""

from pathlib import Path

import pytest

from model_runtime.errors import ModelError
from model_runtime.graph_check import check_graph, explain_refusal
from model_runtime.graph_file import OperatorCode, read_graph_file
from model_runtime.tflite import RuntimeInfo

LITERT = RuntimeInfo("ai-edge-litert", "2.3.0")
OLD = RuntimeInfo("tflite-runtime", "2.14.0")


@pytest.fixture
def models(shared: Path) -> Path:
    return shared / "data/models"


@pytest.mark.parametrize("name", ["vad", "okay_nabu", "hey_jarvis"])
def test_variables_inside_are_refused(models: Path, name: str) -> None:
    with pytest.raises(ModelError, match=rf"{name}\.tflite: .*its state must be explicit inputs and outputs"):
        check_graph(read_graph_file(models / f"microwakeword/{name}.tflite"), LITERT)


def test_variable_tensors_without_variable_operators_are_refused(models: Path) -> None:
    file = read_graph_file(models / "mlcommons/kws_ref_model.tflite")
    with pytest.raises(ModelError, match="keeps state in variables inside"):
        check_graph(file._replace(has_variables=True), LITERT)


@pytest.mark.parametrize("name", ["kws_ref_model_vela", "asr_step_int8io_vela"])
def test_files_for_an_npu_alone_are_refused(models: Path, name: str) -> None:
    with pytest.raises(ModelError, match=rf"{name}\.tflite: .*one NPU alone.*before Vela"):
        check_graph(read_graph_file(models / f"negative/{name}.tflite"), LITERT)


def test_files_for_an_edge_tpu_are_refused(models: Path) -> None:
    file = read_graph_file(models / "mlcommons/kws_ref_model.tflite")
    compiled = file._replace(operators=(OperatorCode(32, "edgetpu-custom-op", 1),))
    with pytest.raises(ModelError, match=r"operator 'edgetpu-custom-op'.*before the Edge TPU compiler"):
        check_graph(compiled, LITERT)


def test_unknown_custom_operators_are_named(models: Path) -> None:
    with pytest.raises(
        ModelError, match=r"custom operators \['SignalEnergy', .*'SignalWindow'\], which ai-edge-litert"
    ):
        check_graph(read_graph_file(models / "negative/audio_preprocessor_int8.tflite"), LITERT)


def test_flex_operators_are_refused_with_the_way_out(models: Path, tmp_path: Path) -> None:
    data = (models / "negative/audio_preprocessor_int8.tflite").read_bytes()
    flex = tmp_path / "flex.tflite"
    flex.write_bytes(data.replace(b"SignalWindow", b"FlexMatMulV2"))
    with pytest.raises(ModelError, match=r"operators \['FlexMatMulV2'\] \(Flex\).*TFLITE_BUILTINS alone"):
        check_graph(read_graph_file(flex), LITERT)


@pytest.mark.parametrize("name", ["negative/asr_step_16x8_tf221_wrong_on_2.14", "dtln_batch/dtlntf214_1_16x8"])
def test_int16_activations_are_refused_on_the_old_runtime_only(models: Path, name: str) -> None:
    file = read_graph_file(models / f"{name}.tflite")
    check_graph(file, LITERT)
    with pytest.raises(
        ModelError, match=r"int16 activations, which tflite-runtime 2\.14\.0 can compute silently wrong"
    ):
        check_graph(file, OLD)


@pytest.mark.parametrize("name", ["dtln/model_1", "dtln_batch/dtlnN_2_int8", "silero/silero16k_int8io"])
def test_good_files_pass_on_both_runtimes(models: Path, name: str) -> None:
    file = read_graph_file(models / f"{name}.tflite")
    check_graph(file, LITERT)
    check_graph(file, OLD)


def test_a_newer_operator_is_explained_with_the_runtimes_version() -> None:
    said = ValueError("Didn't find op for builtin opcode 'FULLY_CONNECTED' version '12'.\nRegistration failed.")
    assert str(explain_refusal(Path("m.tflite"), said, OLD)) == (
        "m.tflite: an operator is newer than tflite-runtime 2.14.0 knows: "
        "Didn't find op for builtin opcode 'FULLY_CONNECTED' version '12'. Registration failed."
    )


def test_any_other_refusal_is_passed_on_in_the_runtimes_words() -> None:
    assert str(explain_refusal(Path("m.tflite"), RuntimeError("Node 3 failed\nto prepare."), LITERT)) == (
        "m.tflite: ai-edge-litert 2.3.0 refuses the model: Node 3 failed to prepare."
    )
