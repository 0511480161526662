"""What a .tflite file says about itself."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from model_runtime.errors import ModelError
from model_runtime.graph_file import GraphFile, numpy_type, read_graph_file
from model_runtime.tflite import Interpreter

MODELS = [
    "dtln/model_1",
    "dtln/model_quant_2",
    "dtln_batch/dtlnN_1_int8",
    "silero/silero16k_fp32",
    "mlcommons/kws_ref_model",
    "microwakeword/vad",
]


@pytest.fixture
def kws(shared: Path) -> Path:
    return shared / "data/models/mlcommons/kws_ref_model.tflite"


@pytest.mark.parametrize("name", MODELS)
def test_inputs_and_outputs_are_those_that_an_interpreter_finds(shared: Path, name: str) -> None:
    path = shared / f"data/models/{name}.tflite"
    file, interpreter = read_graph_file(path), Interpreter(model_path=str(path))
    for ours, theirs in (
        (file.inputs, interpreter.get_input_details()),
        (file.outputs, interpreter.get_output_details()),
    ):
        assert [described(file, index) for index in ours] == [
            (d["index"], d["name"], tuple(d["shape_signature"]), np.dtype(d["dtype"]), d["quantization"])
            for d in theirs
        ]


def described(file: GraphFile, index: int) -> tuple[object, ...]:
    tensor = file.tensors[index]
    quantization = (tensor.scales[0], tensor.zero_points[0]) if tensor.scales else (0.0, 0)
    return tensor.tensor_index, tensor.name, tensor.shape, numpy_type(tensor.type), quantization


def test_signatures_lead_to_tensors(shared: Path) -> None:
    file = read_graph_file(shared / "data/models/silero/silero16k_fp32.tflite")
    assert list(file.signatures) == ["serving_default"]
    signature = file.signatures["serving_default"]
    assert signature.inputs == {"state_h_in": 0, "audio": 1, "state_c_in": 2}
    assert signature.outputs == {"speech_prob": 81, "state_c": 76, "state_h": 78}


def test_operators_of_a_variable_model_are_listed(shared: Path) -> None:
    file = read_graph_file(shared / "data/models/microwakeword/vad.tflite")
    assert {129, 142, 143, 144} <= {code.builtin for code in file.operators}


def test_custom_operators_carry_their_name(shared: Path) -> None:
    file = read_graph_file(shared / "data/models/negative/kws_ref_model_vela.tflite")
    assert [code.custom for code in file.operators] == ["ethos-u"]


@pytest.mark.parametrize("missing", [1, 2, 4, 8, 16, 100, 5000, 26968, 53000])
def test_a_truncated_model_is_refused_however_little_is_missing(kws: Path, tmp_path: Path, missing: int) -> None:
    short = tmp_path / "short.tflite"
    short.write_bytes(kws.read_bytes()[:-missing])
    with pytest.raises(ModelError, match=f"damaged or truncated \\({53936 - missing} bytes\\)"):
        read_graph_file(short)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.integers(0, 53935), st.integers(0, 255)), min_size=1, max_size=30))
def test_flipped_bytes_are_refused_or_read_but_never_crash(
    kws: Path, tmp_path: Path, changes: list[tuple[int, int]]
) -> None:
    data = bytearray(kws.read_bytes())
    for position, value in changes:
        data[position] = value
    damaged = tmp_path / "damaged.tflite"
    damaged.write_bytes(data)
    try:
        read_graph_file(damaged)
    except ModelError as error:
        assert str(damaged) in str(error)


def test_an_empty_file_is_called_empty(shared: Path) -> None:
    with pytest.raises(ModelError, match=r"zero_bytes\.wav: the file is empty"):
        read_graph_file(shared / "field-cases/other/zero_bytes.wav")


def test_an_lfs_pointer_is_called_by_its_name(shared: Path) -> None:
    with pytest.raises(ModelError, match=r"lfs_pointer\.wav: not a TFLite model: this is a Git LFS pointer"):
        read_graph_file(shared / "field-cases/other/lfs_pointer.wav")


def test_an_error_page_is_called_by_its_name(shared: Path) -> None:
    with pytest.raises(ModelError, match=r"error_page\.wav: not a TFLite model: this looks like an HTML or XML page"):
        read_graph_file(shared / "field-cases/other/error_page.wav")


def test_another_format_is_shown_by_its_first_bytes(tmp_path: Path) -> None:
    other = tmp_path / "model.onnx"
    other.write_bytes(b"\x08\x08\x12\x07pytorch")
    with pytest.raises(ModelError, match=r"it begins with b'\\x08\\x08\\x12\\x07pyto'"):
        read_graph_file(other)


def test_a_missing_file_and_a_folder_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"none\.tflite: the file cannot be read: No such file"):
        read_graph_file(tmp_path / "none.tflite")
    with pytest.raises(ModelError, match="the file cannot be read: Is a directory"):
        read_graph_file(tmp_path)
