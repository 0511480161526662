"""The cards of the two recognisers."""

from training.card import Value, state_pairs
from training.words import LEXICON, TOKENS

FEATURES_FILE = "fbank.tflite"
_DATA = (
    "Synthetic speech of 21 words by espeak-ng 1.51 (7 English accents, 61 voices, varied speed and pitch) and flite"
    " 2.2 (kal16, rms, slt); strings of digits from the Free Spoken Digit Dataset (CC BY-SA 4.0; jackson, nicolas,"
    " theo, yweweler, recordings 5 and up); simulated rooms, lines and noises."
)


def asr_card(name: str, kind: str, framing: dict[str, Value], states: list[str]) -> dict[str, Value]:
    """A recogniser's card without its figures."""
    encoder: dict[str, Value] = {
        "role": "encoder",
        "inputs": {"features": "features"},
        "outputs": {"log_probs": "log_probs"},
    }
    if states:
        encoder["states"] = list(state_pairs(states))
    command = "asr_stream" if kind == "streaming_ctc" else "asr_batch"
    return {
        "name": name,
        "version": "1",
        "task": "asr",
        "kind": kind,
        "licence": "Apache-2.0",
        "source": f"Trained from nothing by the project itself: python -m training.{command}.",
        "sample_rate_hz": 16000,
        "signature": "step",
        "variants": {
            variant: {"features": FEATURES_FILE, "encoder": f"encoder_{variant}.tflite"}
            for variant in ("float32", "int8")
        },
        "batch_sizes": "any",
        "graphs": [
            {
                "role": "features",
                "inputs": {"samples": "samples"},
                "outputs": {"features": "features"},
            },
            encoder,
        ],
        "framing": framing,
        "tokens": list(TOKENS),
        "lexicon": {word: list(pieces) for word, pieces in LEXICON.items()},
        "quality": {},
        "data": _DATA,
    }
