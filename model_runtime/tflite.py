"""The one place that knows which TFLite runtime is installed: ai-edge-litert, or tflite-runtime as its equal.

ai-edge-litert is preferred where both are installed; the environment variable UNISON_TFLITE_RUNTIME forces one.
"""

import importlib
import importlib.metadata
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "ROWS_ARE_INDEPENDENT",
    "RUNTIME",
    "Calls",
    "Interpreter",
    "NothingDelegatedError",
    "RuntimeInfo",
    "load_delegate",
    "make_interpreter",
]

_MODULES = {"ai-edge-litert": "ai_edge_litert.interpreter", "tflite-runtime": "tflite_runtime.interpreter"}
_VARIABLE = "UNISON_TFLITE_RUNTIME"


class RuntimeInfo(NamedTuple):
    """The TFLite runtime in use: name of its distribution and version."""

    name: str
    version: str


class Calls(NamedTuple):
    """The three calls of an inference, without the Python that both runtimes wrap around each.

    It takes as long as the copy of a state does, 60 times for 100 ms of audio.
    """

    set_tensor: Callable[[int, np.ndarray], None]
    get_tensor: Callable[[int, int], np.ndarray]
    invoke: Callable[[], None]

    @classmethod
    def of(cls, interpreter: Any) -> "Calls":
        """Gives the calls of an interpreter, which must be kept alive beside them.

        get_tensor's second argument is the subgraph, 0; it gives a copy.
        """
        native = interpreter._interpreter
        return cls(native.SetTensor, native.GetTensor, native.Invoke)


class NothingDelegatedError(RuntimeError):
    """A delegate took no part of the graph: all of it would run on the CPU under the delegate's name."""


def _import_runtime(wanted: str) -> tuple[Any, RuntimeInfo]:
    """Gives the interpreter module and what it is; `wanted` is a distribution's name, or "" for the first found."""
    if wanted and wanted not in _MODULES:
        raise ImportError(f"{_VARIABLE} must be one of {sorted(_MODULES)}, got {wanted!r}")
    reasons = []
    for name in [wanted] if wanted else list(_MODULES):
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            reasons.append(f"{name} is not installed")
            continue
        if name == "tflite-runtime" and int(np.__version__.split(".")[0]) >= 2:
            reasons.append(f"tflite-runtime {version} needs numpy<2, found numpy {np.__version__}")
            continue
        try:
            return importlib.import_module(_MODULES[name]), RuntimeInfo(name, version)
        except ImportError as error:
            reasons.append(f"{name} {version} does not import: {error}")
    raise ImportError(
        f"no TFLite runtime can be used ({'; '.join(reasons)}): "
        "install unison-speech[litert] or unison-speech[tflite-runtime]"
    )


_module, RUNTIME = _import_runtime(os.environ.get(_VARIABLE, ""))

# Whether a row of a product of matrices is the same to the bit whatever the number of rows. tflite-runtime 2.14 rounds
# products of activations by their number: 4e-5 in Whisper's logits, 0.4 once int8 weights make steps of it.
ROWS_ARE_INDEPENDENT = RUNTIME.name == "ai-edge-litert"

# Whether an interpreter that had other shapes before computes to the bit what a new one does. With tflite-runtime 2.14
# it does not (products of activations in Whisper), so there new shapes need a new interpreter.
RESIZING_IS_EXACT = RUNTIME.name == "ai-edge-litert"

# Any: neither distribution ships types.
Interpreter: Any = _module.Interpreter
load_delegate: Any = _module.load_delegate


def make_interpreter(
    path: Path, threads: int, shapes: Sequence[tuple[int, tuple[int, ...]]], delegate: Any | None = None
) -> Any:
    """Gives an interpreter over the file, its inputs resized, the delegate applied and its tensors allocated.

    The delegate is applied after the resize and not by the constructor: one that cannot take dynamic tensors makes
    the graph immutable, so a batch of 8 could never be set afterwards.

    Args:
        path: the .tflite file.
        threads: threads of one invoke.
        shapes: (tensor index, shape) of every input; when empty, nothing is allocated.
        delegate: what load_delegate gave; the interpreter keeps it alive.

    Raises:
        ValueError, RuntimeError: as the runtime raises them.
        NothingDelegatedError: the delegate left the whole graph to the CPU.
    """
    interpreter = Interpreter(model_path=str(path), num_threads=threads)
    for index, shape in shapes:
        interpreter.resize_tensor_input(index, shape)
    if delegate is not None:
        # The same two lines as in both runtimes' constructors, which own delegates in this attribute.
        interpreter._delegates = [delegate]
        nodes = interpreter._interpreter.NumNodes()
        interpreter._interpreter.ModifyGraphWithDelegate(delegate._get_native_delegate_pointer())
        if interpreter._interpreter.NumNodes() == nodes:
            raise NothingDelegatedError("the delegate takes no operator of this graph")
    if shapes:
        interpreter.allocate_tensors()
    return interpreter
