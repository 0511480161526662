"""Pure functions become .tflite files, from float32 to full INT8, with one signature called ``step``."""

import inspect
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import tensorflow as tf

SIGNATURE = "step"
Tensors = dict[str, tf.Tensor]
Arrays = dict[str, np.ndarray]


class Graph(NamedTuple):
    """One exportable computation.

    Attributes:
        function: Takes its tensors by name, returns tensors by name; its weights are constants.
        inputs: Name, type and shape of each input; None marks a dimension that stays dynamic.
    """

    function: Callable[..., Tensors]
    inputs: dict[str, tf.TensorSpec]


def _with_named_parameters(graph: Graph) -> Callable[..., Tensors]:
    """The graph's function with a parameter per input, which is what names the tensors of a signature."""

    def call(*tensors: tf.Tensor, **more: tf.Tensor) -> Tensors:
        return graph.function(**dict(zip(graph.inputs, tensors, strict=False)), **more)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in graph.inputs]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call


def _converter(graph: Graph, folder: str) -> tf.lite.TFLiteConverter:
    function = tf.function(_with_named_parameters(graph), input_signature=list(graph.inputs.values()))
    module = tf.Module()
    module.step = function
    signatures = {SIGNATURE: function.get_concrete_function()}
    tf.saved_model.save(module, folder, signatures=signatures)
    return tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=[SIGNATURE])


def convert_float(graph: Graph) -> bytes:
    """The graph as a float32 .tflite."""
    with tempfile.TemporaryDirectory() as folder:
        return bytes(_converter(graph, folder).convert())


def convert_float16(graph: Graph) -> bytes:
    """The graph with weights in float16; it still computes in float32."""
    with tempfile.TemporaryDirectory() as folder:
        converter = _converter(graph, folder)
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.target_spec.supported_types = [tf.float16]
        return bytes(converter.convert())


def convert_dynamic(graph: Graph) -> bytes:
    """The graph with int8 weights, one scale per tensor; activations are float32 outside its products.

    tflite-runtime 2.14 refuses a scale per channel ("FULLY_CONNECTED version 12").
    """
    with tempfile.TemporaryDirectory() as folder:
        converter = _converter(graph, folder)
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter._experimental_disable_per_channel = True
        converter._experimental_disable_per_channel_quantization_for_dense_layers = True
        return bytes(converter.convert())


def convert_int8(graph: Graph, examples: Iterable[Arrays]) -> bytes:
    """The graph as a full INT8 .tflite with int8 inputs, outputs and states.

    Args:
        graph: What to convert.
        examples: Inputs by name, as the running model meets them; they set the ranges.
    """

    def representative() -> Iterator[Arrays]:
        yield from examples

    with tempfile.TemporaryDirectory() as folder:
        converter = _converter(graph, folder)
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = representative
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = tf.int8
        converter.inference_output_type = tf.int8
        return bytes(converter.convert())
