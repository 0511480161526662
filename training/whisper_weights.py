"""Whisper's weights under one set of names, whichever form they come in.

    encoder/conv1/weight [D, mel, 3], bias         encoder/positions [1500, D]        encoder/norm/gamma, beta
    encoder/<i>/self/{norm, query, key, value, out}, encoder/<i>/feed/{norm, up, down}
    decoder/embedding [V, D]                       decoder/positions [448, D]         decoder/norm/gamma, beta
    decoder/<i>/self/..., decoder/<i>/cross/..., decoder/<i>/feed/...

Dense layers are ``weight [out, in]`` and ``bias [out]``; keys have no bias in Whisper, zeros stand for it.
"""

import re

import numpy as np

from model_runtime.whisper_features import sinusoids

Arrays = dict[str, np.ndarray]

# All sizes of Whisper have heads of this width.
HEAD_WIDTH = 64

_CT2_LAYERS = {
    "self_attention/layer_norm": ("self/norm",),
    "self_attention/linear_0": ("self/query", "self/key", "self/value"),
    "self_attention/linear_1": ("self/out",),
    "attention/layer_norm": ("cross/norm",),
    "attention/linear_0": ("cross/query",),
    "attention/linear_1": ("cross/key", "cross/value"),
    "attention/linear_2": ("cross/out",),
    "ffn/layer_norm": ("feed/norm",),
    "ffn/linear_0": ("feed/up",),
    "ffn/linear_1": ("feed/down",),
}
_CT2_REST = {
    "position_encodings/encodings": "positions",
    "embeddings/weight": "embedding",
    "layer_norm/gamma": "norm/gamma",
    "layer_norm/beta": "norm/beta",
}
_HF_LAYERS = {
    "self_attn_layer_norm": "self/norm",
    "encoder_attn_layer_norm": "cross/norm",
    "final_layer_norm": "feed/norm",
    "fc1": "feed/up",
    "fc2": "feed/down",
    **{f"self_attn.{short}_proj": f"self/{name}" for short, name in zip("qkv", ("query", "key", "value"), strict=True)},
    **{
        f"encoder_attn.{short}_proj": f"cross/{name}"
        for short, name in zip("qkv", ("query", "key", "value"), strict=True)
    },
    "self_attn.out_proj": "self/out",
    "encoder_attn.out_proj": "cross/out",
}
_HF_REST = {
    "embed_positions.weight": "positions",
    "embed_tokens.weight": "embedding",
    "layer_norm.weight": "norm/gamma",
    "layer_norm.bias": "norm/beta",
    **{f"conv{i}.{part}": f"conv{i}/{part}" for i in (1, 2) for part in ("weight", "bias")},
}


def from_ctranslate2(stored: Arrays) -> Arrays:
    """Our names for what `read_ctranslate2_weights` gave.

    Raises:
        ValueError: The weights are not those of a Whisper model.
    """
    arrays: Arrays = {}
    for name, array in stored.items():
        found = re.fullmatch(r"(encoder|decoder)/(?:layer_(\d+)/)?(.+)", name)
        if not found or array.ndim == 0 or name.endswith("_scale"):
            continue
        side, layer, rest = found.groups()
        head, _, part = rest.rpartition("/")
        if layer is None:
            if rest in _CT2_REST or head in ("conv1", "conv2"):
                arrays[f"{side}/{_CT2_REST.get(rest, rest)}"] = array
        elif head in _CT2_LAYERS:
            # Projections of the same input are stored one below the other.
            names = _CT2_LAYERS[head]
            for ours, piece in zip(names, np.split(array, len(names)), strict=True):
                arrays[f"{side}/{layer}/{ours}/{part}"] = piece
    return _checked(arrays)


def from_huggingface(stored: Arrays) -> Arrays:
    """Our names for the arrays of a WhisperForConditionalGeneration.

    Raises:
        ValueError: The weights are not those of a Whisper model.
    """
    arrays: Arrays = {}
    for name, array in stored.items():
        found = re.fullmatch(r"(?:model\.)?(encoder|decoder)\.(?:layers\.(\d+)\.)?(.+)", name)
        if not found:
            continue
        side, layer, rest = found.groups()
        head, _, part = rest.rpartition(".")
        if layer is None:
            if rest in _HF_REST:
                arrays[f"{side}/{_HF_REST[rest]}"] = array
        elif head in _HF_LAYERS:
            ours = _HF_LAYERS[head]
            if ours.endswith("norm"):
                part = {"weight": "gamma", "bias": "beta"}[part]
            arrays[f"{side}/{layer}/{ours}/{part}"] = array
    for name in [name for name in arrays if name.endswith("key/weight")]:
        arrays.setdefault(name.replace("weight", "bias"), np.zeros(len(arrays[name]), np.float32))
    return _checked(arrays)


def layers(arrays: Arrays, side: str) -> int:
    """The number of layers of the encoder or the decoder."""
    return len({name.split("/")[1] for name in arrays if re.match(rf"{side}/\d+/", name)})


def _checked(arrays: Arrays) -> Arrays:
    needed = {
        "encoder/positions",
        "encoder/conv1/weight",
        "encoder/norm/gamma",
        "decoder/embedding",
        "decoder/positions",
    }
    for side, parts in (("encoder", ("self", "feed")), ("decoder", ("self", "cross", "feed"))):
        for layer in range(max(1, layers(arrays, side))):
            for part in parts:
                inner = ("up", "down") if part == "feed" else ("query", "key", "value", "out")
                needed |= {f"{side}/{layer}/{part}/{name}/{kind}" for name in inner for kind in ("weight", "bias")}
                needed |= {f"{side}/{layer}/{part}/norm/{kind}" for kind in ("gamma", "beta")}
    missing = sorted(needed - set(arrays))
    if missing:
        raise ValueError(f"these are not the weights of a Whisper model: {len(missing)} missing, such as {missing[:3]}")
    positions = arrays["encoder/positions"]
    # float16 rounds to 5e-4 at most; a model that learned its own positions needs another graph.
    error = float(np.abs(positions - sinusoids(*positions.shape)).max())
    if error > 1e-3:
        raise ValueError(f"encoder positions must be Whisper's sinusoids, they differ by up to {error:.3g}")
    return arrays
