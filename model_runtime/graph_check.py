"""Refusals: why a .tflite file that can be read must not be run, each in a sentence of its own."""

from pathlib import Path

from model_runtime.errors import ModelError
from model_runtime.graph_file import GraphFile
from model_runtime.tflite import RUNTIME, RuntimeInfo

__all__ = ["check_graph", "explain_refusal"]

# TFLite's builtin operators that keep something between calls: CALL_ONCE, VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE.
_VARIABLE_OPERATORS = frozenset({129, 142, 143, 144})
# What TFLite's own resolver registers under a custom name.
_KNOWN_CUSTOM = frozenset({"NumericVerify", "Mfcc", "AudioSpectrogram", "TFLite_Detection_PostProcess"})
# The operator that holds a whole compiled graph -> the tool that makes it.
_NPU_COMPILERS = {"ethos-u": "Vela", "edgetpu-custom-op": "the Edge TPU compiler"}


def check_graph(file: GraphFile, runtime: RuntimeInfo = RUNTIME) -> None:
    """Refuses a file that holds hidden state, needs what the runtime lacks, or is known to compute wrong values.

    Raises:
        ModelError: the path and the reason.
    """
    if file.has_variables or any(code.builtin in _VARIABLE_OPERATORS for code in file.operators):
        raise ModelError(
            f"{file.path}: the model keeps state in variables inside, where sessions would share it: "
            "its state must be explicit inputs and outputs"
        )
    custom = sorted({code.custom for code in file.operators if code.custom} - _KNOWN_CUSTOM)
    for name in custom:
        if name in _NPU_COMPILERS:
            raise ModelError(
                f"{file.path}: the model is compiled for one NPU alone (operator {name!r}), and the CPU must be able "
                f"to take over: give the file from before {_NPU_COMPILERS[name]}"
            )
    flex = [name for name in custom if name.startswith("Flex")]
    if flex:
        raise ModelError(
            f"{file.path}: the model needs TensorFlow's own operators {flex} (Flex), which {runtime.name} does not "
            "have: convert it with TFLITE_BUILTINS alone"
        )
    if custom:
        raise ModelError(f"{file.path}: the model needs custom operators {custom}, which {runtime.name} does not have")
    if "int16" in file.types and runtime.name == "tflite-runtime":
        raise ModelError(
            f"{file.path}: the model has int16 activations, which {runtime.name} {runtime.version} can compute "
            "silently wrong: use ai-edge-litert, or another variant"
        )


def explain_refusal(path: Path, error: Exception, runtime: RuntimeInfo = RUNTIME) -> ModelError:
    """Gives the ModelError for what the runtime said when it made an interpreter of a file."""
    words = " ".join(str(error).split())
    if "Didn't find op" in words:
        return ModelError(f"{path}: an operator is newer than {runtime.name} {runtime.version} knows: {words}")
    return ModelError(f"{path}: {runtime.name} {runtime.version} refuses the model: {words}")
