"""Makes the toy beside it: a Whisper of random weights, 40 tokens and one layer, whose text hangs on the audio.

    python -m tests.model_runtime.whisper_toy.make     (needs the training extra)

It says nothing sensible, but all that it says comes out of real graphs by the real decoding, in milliseconds.
"""

import json
import string
import tempfile
from pathlib import Path

import numpy as np

from model_runtime.whisper_features import sinusoids
from training.import_whisper import import_whisper
from training.whisper_source import WhisperSource
from training.whisper_weights import Arrays

WIDTH, MEL_BINS, FEED, POSITIONS = 64, 80, 64, 32
SPECIAL = ("endoftext", "startoftranscript", "translate", "transcribe", "startofprev", "nospeech", "notimestamps")


def vocabulary() -> dict[str, int]:
    """Letters, and letters behind a space (Ġ), as GPT-2's bytes are written."""
    pieces = [*string.ascii_lowercase, *("Ġ" + letter for letter in "aeiou")]
    return {piece: number for number, piece in enumerate(pieces)}


def weights(tokens: int) -> Arrays:
    """Random weights of Whisper's shapes; the audio speaks louder than the tokens do."""
    rng = np.random.default_rng(12)

    def drawn(*shape: int, scale: float = 1.0) -> np.ndarray:
        return (scale * rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)

    arrays: Arrays = {
        "encoder/positions": sinusoids(1500, WIDTH),
        "decoder/positions": drawn(POSITIONS, WIDTH, scale=4.0),
        "decoder/embedding": drawn(tokens, WIDTH, scale=8.0),
    }
    for number, inputs in ((1, MEL_BINS), (2, WIDTH)):
        arrays[f"encoder/conv{number}/weight"] = drawn(WIDTH, inputs, 3, scale=0.5)
        arrays[f"encoder/conv{number}/bias"] = np.zeros(WIDTH, np.float32)
    for place in ("encoder/norm", "decoder/norm"):
        arrays |= {f"{place}/gamma": np.ones(WIDTH, np.float32), f"{place}/beta": np.zeros(WIDTH, np.float32)}
    for place in ("encoder/0/self", "decoder/0/self", "decoder/0/cross", "encoder/0/feed", "decoder/0/feed"):
        feed = place.endswith("feed")
        loud = 6.0 if place.endswith("cross") else 1.0
        for part in ("up", "down") if feed else ("query", "key", "value", "out"):
            arrays[f"{place}/{part}/weight"] = drawn(FEED, WIDTH, scale=loud)
            arrays[f"{place}/{part}/bias"] = np.zeros(WIDTH, np.float32)
        arrays |= {f"{place}/norm/gamma": np.ones(WIDTH, np.float32), f"{place}/norm/beta": np.zeros(WIDTH, np.float32)}
    return arrays


def main() -> None:
    """Writes card, graphs and tokenizer beside this file."""
    vocab = vocabulary()
    added = [{"id": len(vocab) + number, "content": f"<|{name}|>"} for number, name in enumerate(SPECIAL)]
    tokenizer = {"model": {"vocab": vocab, "merges": []}, "added_tokens": added}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        path.write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")
        # Timestamps are the tokens above the special ones; there are two.
        source = WhisperSource(weights(len(vocab) + len(SPECIAL) + 2), path, (), (), ((0, 0),), {})
        import_whisper(
            source, Path(__file__).parent, ["float16"], "tests/model_runtime/whisper_toy/make.py", prompt=True
        )


if __name__ == "__main__":
    main()
