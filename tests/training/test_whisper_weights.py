"""The same weights in CTranslate2's, HuggingFace's and our own names."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from model_runtime.whisper_features import sinusoids
from training.safetensors_weights import read_safetensors_weights
from training.whisper_weights import Arrays, from_ctranslate2, from_huggingface, layers

WIDTH, TOKENS, LAYERS = 64, 30, 2
RNG = np.random.default_rng(2)


def drawn(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def ours() -> Arrays:
    arrays = {
        "encoder/conv1/weight": drawn(WIDTH, 80, 3),
        "encoder/conv1/bias": drawn(WIDTH),
        "encoder/conv2/weight": drawn(WIDTH, WIDTH, 3),
        "encoder/conv2/bias": drawn(WIDTH),
        "encoder/positions": sinusoids(50, WIDTH),
        "decoder/embedding": drawn(TOKENS, WIDTH),
        "decoder/positions": drawn(16, WIDTH),
    }
    for side, parts in (("encoder", ("self", "feed")), ("decoder", ("self", "cross", "feed"))):
        norms = [f"{side}/norm"] + [f"{side}/{layer}/{part}/norm" for layer in range(LAYERS) for part in parts]
        arrays |= {f"{norm}/{kind}": drawn(WIDTH) for norm in norms for kind in ("gamma", "beta")}
        for layer in range(LAYERS):
            for part in parts:
                for name in ("up", "down") if part == "feed" else ("query", "key", "value", "out"):
                    shape = {"up": (4 * WIDTH, WIDTH), "down": (WIDTH, 4 * WIDTH)}.get(name, (WIDTH, WIDTH))
                    arrays[f"{side}/{layer}/{part}/{name}/weight"] = drawn(*shape)
                    bias = drawn(shape[0])
                    arrays[f"{side}/{layer}/{part}/{name}/bias"] = np.zeros_like(bias) if name == "key" else bias
    return arrays


def in_huggingface_names(arrays: Arrays) -> Arrays:
    names = {"self": "self_attn", "cross": "encoder_attn"}
    found = {}
    for name, array in arrays.items():
        match name.split("/"):
            case [_, _, _, "key", "bias"]:
                continue
            case [side, layer, "feed", "norm", kind]:
                part = f"layers.{layer}.final_layer_norm.{'weight' if kind == 'gamma' else 'bias'}"
            case [side, layer, "feed", inner, kind]:
                part = f"layers.{layer}.fc{'1' if inner == 'up' else '2'}.{kind}"
            case [side, layer, block, "norm", kind]:
                part = f"layers.{layer}.{names[block]}_layer_norm.{'weight' if kind == 'gamma' else 'bias'}"
            case [side, layer, block, inner, kind]:
                part = f"layers.{layer}.{names[block]}.{inner if inner == 'out' else inner[0]}_proj.{kind}"
            case [side, "norm", kind]:
                part = f"layer_norm.{'weight' if kind == 'gamma' else 'bias'}"
            case [side, conv, kind]:
                part = f"{conv}.{kind}"
            case [side, rest]:
                part = {"positions": "embed_positions.weight", "embedding": "embed_tokens.weight"}[rest]
        found[f"model.{side}.{part}"] = array
    return found | {"proj_out.weight": arrays["decoder/embedding"]}


def in_ctranslate2_names(arrays: Arrays) -> Arrays:
    found = {"decoder/num_heads": np.array(1)}
    for side in ("encoder", "decoder"):
        found[f"{side}/position_encodings/encodings"] = arrays[f"{side}/positions"]
        for kind in ("gamma", "beta"):
            found[f"{side}/layer_norm/{kind}"] = arrays[f"{side}/norm/{kind}"]
    found["decoder/embeddings/weight"] = found["decoder/projection/weight"] = arrays["decoder/embedding"]
    found |= {name: array for name, array in arrays.items() if "/conv" in name}
    for side, parts in (("encoder", ("self", "feed")), ("decoder", ("self", "cross", "feed"))):
        for layer, part in [(layer, part) for layer in range(LAYERS) for part in parts]:
            their = {"self": "self_attention", "cross": "attention", "feed": "ffn"}[part]
            packed = {
                "self": ["query key value", "out"],
                "cross": ["query", "key value", "out"],
                "feed": ["up", "down"],
            }
            for kind in ("gamma", "beta"):
                found[f"{side}/layer_{layer}/{their}/layer_norm/{kind}"] = arrays[f"{side}/{layer}/{part}/norm/{kind}"]
            for number, names in enumerate(packed[part]):
                for kind in ("weight", "bias"):
                    pieces = [arrays[f"{side}/{layer}/{part}/{name}/{kind}"] for name in names.split()]
                    found[f"{side}/layer_{layer}/{their}/linear_{number}/{kind}"] = np.concatenate(pieces)
    return found


def assert_equal(found: Arrays, wanted: Arrays) -> None:
    assert sorted(found) == sorted(wanted)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_both_forms_give_the_same_weights() -> None:
    arrays = ours()
    assert_equal(from_ctranslate2(in_ctranslate2_names(arrays)), arrays)
    assert_equal(from_huggingface(in_huggingface_names(arrays)), arrays)
    assert (layers(arrays, "encoder"), layers(arrays, "decoder")) == (LAYERS, LAYERS)


def test_what_is_missing_is_named() -> None:
    stored = in_huggingface_names(ours())
    del stored["model.decoder.layers.1.fc1.bias"]
    with pytest.raises(ValueError, match=r"1 missing, such as \['decoder/1/feed/up/bias'\]"):
        from_huggingface(stored)


def test_learned_encoder_positions_are_refused() -> None:
    stored = in_huggingface_names(ours())
    stored["model.encoder.embed_positions.weight"] = drawn(50, WIDTH)
    with pytest.raises(ValueError, match="must be Whisper's sinusoids"):
        from_huggingface(stored)


def test_safetensors_of_several_files_and_types_are_read(tmp_path: Path) -> None:
    half = np.array([[1, -2]], "<f2")
    for name, kind, stored in (("a", "F16", half), ("b", "BF16", np.array([0x3F80], "<u2"))):
        entry = {"dtype": kind, "shape": list(stored.shape), "data_offsets": [0, stored.nbytes]}
        header = json.dumps({"__metadata__": {"format": "pt"}, name: entry}).encode()
        (tmp_path / f"{name}.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + stored.tobytes())
    weights = read_safetensors_weights(sorted(tmp_path.glob("*.safetensors")))
    assert weights["a"].tolist() == [[1, -2]]
    assert weights["b"].tolist() == [1]
    assert {array.dtype for array in weights.values()} == {np.dtype(np.float32)}
