"""``python -m training.import_silero FOLDER``: Silero VAD from its Python package as a .tflite and a card.

The package ``silero-vad`` (MIT) holds the weights; it needs to be installed, but is not imported.
"""

import argparse
import functools
import importlib.util
from pathlib import Path

import numpy as np
import tensorflow as tf

from training.card import state_pairs, write_card
from training.export import Graph, convert_float
from training.onnx_weights import read_onnx_weights
from training.weights import Arrays

BLOCK_SAMPLES = 512
CONTEXT_SAMPLES = 64
_UNITS = 128
_BINS = 129
_FILE = "silero_float32.tflite"
_STRIDES = (1, 2, 2, 1)
_RNN = "model.decoder.rnn"
_OUT = "model.decoder.decoder.2"


def packaged_weights() -> Path:
    """The weights for 16 kHz in the installed package.

    Raises:
        SystemExit: The package is not installed.
    """
    found = importlib.util.find_spec("silero_vad")
    if found is None or found.origin is None:
        raise SystemExit("the weights come with the package silero-vad: pip install --no-deps silero-vad")
    return Path(found.origin).parent / "data" / "silero_vad_16k_op15.onnx"


def _conv(kernel: np.ndarray, x: tf.Tensor, stride: int) -> tf.Tensor:
    return tf.nn.conv1d(x, kernel.transpose(2, 1, 0), stride, "VALID")


def step(weights: Arrays, samples: tf.Tensor, h_in: tf.Tensor, c_in: tf.Tensor) -> dict[str, tf.Tensor]:
    """One block.

    Args:
        weights: By their names in the package.
        samples: float32 [N, 64 + 512], 16 kHz, -1..1.
        h_in: [N, 128].
        c_in: [N, 128].

    Returns:
        ``speech`` [N, 1], 0..1, and the next states ``h_out`` and ``c_out``.
    """
    padded = tf.expand_dims(tf.pad(samples, [[0, 0], [0, CONTEXT_SAMPLES]], "REFLECT"), 2)
    spectrum = _conv(weights["model.stft.forward_basis_buffer"], padded, 128)
    x = tf.sqrt(tf.square(spectrum[:, :, :_BINS]) + tf.square(spectrum[:, :, _BINS:]))
    for layer, stride in enumerate(_STRIDES):
        name = f"model.encoder.{layer}.reparam_conv"
        around = tf.pad(x, [[0, 0], [1, 1], [0, 0]])
        x = tf.nn.relu(_conv(weights[f"{name}.weight"], around, stride) + weights[f"{name}.bias"])
    gates = tf.matmul(x[:, 0], weights[f"{_RNN}.weight_ih"].T) + weights[f"{_RNN}.bias_ih"]
    gates += tf.matmul(h_in, weights[f"{_RNN}.weight_hh"].T) + weights[f"{_RNN}.bias_hh"]
    write, keep, new, read = tf.split(gates, 4, axis=1)
    cell = tf.sigmoid(keep) * c_in + tf.sigmoid(write) * tf.tanh(new)
    hidden = tf.sigmoid(read) * tf.tanh(cell)
    logits = tf.matmul(tf.nn.relu(hidden), weights[f"{_OUT}.weight"][0]) + weights[f"{_OUT}.bias"]
    speech = tf.sigmoid(logits)
    return {"speech": speech, "h_out": hidden, "c_out": cell}


def silero_graph(weights: Arrays) -> Graph:
    """The exportable graph."""
    shapes = {"samples": CONTEXT_SAMPLES + BLOCK_SAMPLES, "h_in": _UNITS, "c_in": _UNITS}
    inputs = {name: tf.TensorSpec([None, size], tf.float32, name) for name, size in shapes.items()}
    return Graph(functools.partial(step, weights), inputs)


def import_silero(folder: Path, weights: Path) -> None:
    """Writes the .tflite and the card into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _FILE).write_bytes(convert_float(silero_graph(read_onnx_weights(weights))))
    write_card(
        folder,
        {
            "name": folder.resolve().name,
            "version": "1",
            "task": "vad",
            "kind": "frame_probability",
            "licence": "MIT",
            "source": "Weights of the Python package silero-vad, by python -m training.import_silero.",
            "sample_rate_hz": 16000,
            "signature": "step",
            "variants": {"float32": {"vad": _FILE}},
            "batch_sizes": "any",
            "graphs": [
                {
                    "role": "vad",
                    "inputs": {"samples": "samples"},
                    "outputs": {"speech": "speech"},
                    "states": list(state_pairs(["h", "c"])),
                }
            ],
            "framing": {"block_samples": BLOCK_SAMPLES, "context_samples": CONTEXT_SAMPLES},
            "quality": {},
            "data": "As published by its authors; not trained here.",
        },
    )


def main(argv: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where to write; its name becomes the model's")
    parser.add_argument("--weights", type=Path, help="a silero_vad_16k_op15.onnx")
    options = parser.parse_args(argv)
    import_silero(options.folder, options.weights or packaged_weights())
    print(f"wrote {options.folder}")


if __name__ == "__main__":
    main()
