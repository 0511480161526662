"""``python -m training.fbank`` writes the feature graph, fbank.tflite, for both recognisers."""

from pathlib import Path

import tensorflow as tf

from training.card import model_folder
from training.export import Graph, convert_float
from training.filterbank import MEL_BINS, features

FILE = "fbank.tflite"


def fbank_graph() -> Graph:
    """The graph of role ``features``: samples [N, S] -> features [N, T, 40]."""
    return Graph(
        lambda samples: {"features": features(samples)},
        {"samples": tf.TensorSpec([None, None], tf.float32, "samples")},
    )


def write_fbank(folder: Path) -> None:
    """Writes the graph into a model's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_bytes(convert_float(fbank_graph()))


def main() -> None:
    """Writes the graph for each model that needs it."""
    for name in ("unison-asr-stream", "unison-asr-transducer", "unison-asr-batch"):
        write_fbank(model_folder(name))
        print(f"{name}/{FILE}: {MEL_BINS} bins")


if __name__ == "__main__":
    main()
