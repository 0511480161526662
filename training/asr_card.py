"""The cards of the recognisers."""

from training.card import Value, state_pairs
from training.filterbank import CONTEXT_SAMPLES
from training.words import LEXICON, TOKENS

FEATURES_FILE = "fbank.tflite"
_DATA = (
    "Synthetic speech of 21 words by espeak-ng 1.51 (7 English accents, 61 voices, varied speed and pitch), flite"
    " 2.2 (kal16, rms, slt) and Kokoro-82M (140 mixtures of its voices); strings of digits from the Free Spoken"
    " Digit Dataset (CC BY-SA 4.0; jackson, nicolas, theo, yweweler, recordings 5 and up); simulated rooms, lines"
    " and noises."
)


# How the streaming recognisers are fed; the lag of their words is measured.
STREAM_FRAMING: dict[str, Value] = {
    "block_samples": 1280,
    "context_samples": CONTEXT_SAMPLES,
    "frame_samples": 640,
    "tail_samples": 5120,
    "delay_samples": 0,
}
_COMMANDS = {"streaming_ctc": "asr_stream", "streaming_transducer": "asr_transducer", "utterance_ctc": "asr_batch"}


def graph_entry(role: str, inputs: list[str], output: str, states: list[str]) -> dict[str, Value]:
    """A graph's entry in a card; its tensors have the names that the runtime calls them by."""
    entry: dict[str, Value] = {
        "role": role,
        "inputs": {name: name for name in inputs},
        "outputs": {output: output},
    }
    return entry | ({"states": list(state_pairs(states))} if states else {})


def asr_card(name: str, kind: str, framing: dict[str, Value], graphs: list[dict[str, Value]]) -> dict[str, Value]:
    """A recogniser's card without its figures; `graphs` are those behind the features, each in a file by its role."""
    return {
        "name": name,
        "version": "1",
        "task": "asr",
        "kind": kind,
        "licence": "Apache-2.0",
        "source": f"Trained from nothing by the project itself: python -m training.{_COMMANDS[kind]}.",
        "sample_rate_hz": 16000,
        "signature": "step",
        "variants": {
            variant: {"features": FEATURES_FILE}
            | {graph["role"]: f"{graph['role']}_{variant}.tflite" for graph in graphs}
            for variant in ("float32", "int8")
        },
        "batch_sizes": "any",
        "graphs": [graph_entry("features", ["samples"], "features", []), *graphs],
        "framing": framing,
        "tokens": list(TOKENS),
        "lexicon": {word: list(pieces) for word, pieces in LEXICON.items()},
        "quality": {},
        "data": _DATA,
    }
