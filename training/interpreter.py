"""A .tflite run by its signature, with int8 tensors quantised and states fed back: for evaluation only."""

from pathlib import Path
from typing import Any

import numpy as np

from model_runtime.tflite import Interpreter

Arrays = dict[str, np.ndarray]
# Details of a tensor, as the interpreter gives them.
Details = dict[str, Any]


def _quantise(array: np.ndarray, details: Details) -> np.ndarray:
    if details["dtype"] != np.int8 or array.dtype == np.int8:
        return array
    scale, zero = details["quantization"]
    return np.asarray(np.clip(np.round(array / scale) + zero, -128, 127), np.int8)


def _dequantise(array: np.ndarray, details: Details) -> np.ndarray:
    if array.dtype != np.int8:
        return array
    scale, zero = details["quantization"]
    return np.asarray((array.astype(np.float32) - zero) * np.float32(scale))


class Model:
    """One graph on one thread.

    States are the inputs ``*_in``; `call` returns them quantised as the graph wants them back.
    """

    def __init__(self, path: Path) -> None:
        interpreter = Interpreter(model_path=str(path), num_threads=1)
        self._runner = interpreter.get_signature_runner("step")
        self._inputs: dict[str, Details] = self._runner.get_input_details()
        self._outputs: dict[str, Details] = self._runner.get_output_details()

    def initial_states(self, batch: int) -> Arrays:
        """Zeros for every state, in the graph's own type."""
        states = {}
        for name, details in self._inputs.items():
            if name.endswith("_in"):
                zeros = np.zeros((batch, *details["shape_signature"][1:]), np.float32)
                states[name] = _quantise(zeros, details)
        return states

    def call(self, states: Arrays | None = None, **inputs: np.ndarray) -> tuple[Arrays, Arrays]:
        """Runs the graph.

        Args:
            states: From `initial_states` or the call before.
            **inputs: The other inputs, float32.

        Returns:
            The outputs as float32, and the states for the next call.
        """
        fed = {name: _quantise(array, self._inputs[name]) for name, array in inputs.items()}
        outputs = self._runner(**fed, **(states or {}))
        after = {}
        for name in states or {}:
            twin = name.removesuffix("_in") + "_out"
            after[name] = self._as_input(outputs.pop(twin), twin, name)
        return {k: _dequantise(v, self._outputs[k]) for k, v in outputs.items()}, after

    def _as_input(self, array: np.ndarray, output: str, name: str) -> np.ndarray:
        source, target = self._outputs[output], self._inputs[name]
        if source["quantization"] == target["quantization"]:
            return array
        return _quantise(_dequantise(array, source), target)
