"""A small Whisper with drawn weights, imported from both forms and run; compared with its equations in numpy."""

import json
import math

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="the graphs are made with TensorFlow")

from model_runtime.card import ModelCard, load_card
from model_runtime.devices import RouteConfig
from model_runtime.graph import Graph
from model_runtime.whisper_features import log_mel, sinusoids
from model_runtime.whisper_framing import WhisperFraming
from model_runtime.whisper_model import WhisperModel
from training.import_whisper import import_whisper
from training.whisper_source import WhisperSource
from training.whisper_weights import Arrays

WIDTH, HEADS, TOKENS, MEL, FRAMES, PLACES = 128, 2, 60, 8, 20, 70
ALIGNMENT = ((1, 1), (0, 0))
SPECIAL = ("endoftext", "startoftranscript", "translate", "transcribe", "startofprev", "nocaptions", "notimestamps")


def weights() -> Arrays:
    rng = np.random.default_rng(4)

    def drawn(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / math.sqrt(shape[-1])).astype(np.float32)

    arrays = {"encoder/positions": sinusoids(FRAMES, WIDTH), "decoder/positions": drawn(PLACES, WIDTH)}
    arrays |= {"decoder/embedding": drawn(TOKENS, WIDTH), "encoder/conv1/weight": drawn(WIDTH, MEL, 3)}
    arrays |= {"encoder/conv2/weight": drawn(WIDTH, WIDTH, 3)}
    arrays |= {f"encoder/conv{i}/bias": drawn(WIDTH) for i in (1, 2)}
    blocks = {
        "encoder/0": ("self", "feed"),
        "decoder/0": ("self", "cross", "feed"),
        "decoder/1": ("self", "cross", "feed"),
    }
    for norm in ["encoder", "decoder"] + [f"{block}/{part}" for block, parts in blocks.items() for part in parts]:
        arrays |= {f"{norm}/norm/gamma": 1 + drawn(WIDTH), f"{norm}/norm/beta": drawn(WIDTH)}
    for block, parts in blocks.items():
        for part in parts:
            for name in ("up", "down") if part == "feed" else ("query", "key", "value", "out"):
                rows, columns = {"up": (512, WIDTH), "down": (WIDTH, 512)}.get(name, (WIDTH, WIDTH))
                arrays[f"{block}/{part}/{name}/weight"] = drawn(rows, columns)
                arrays[f"{block}/{part}/{name}/bias"] = drawn(rows)
    return arrays


ARRAYS = weights()


def norm(x: np.ndarray, name: str) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * ARRAYS[f"{name}/gamma"] + ARRAYS[f"{name}/beta"]


def dense(x: np.ndarray, name: str) -> np.ndarray:
    return x @ ARRAYS[f"{name}/weight"].T + ARRAYS[f"{name}/bias"]


def gelu(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def attend(x: np.ndarray, heard: np.ndarray, name: str, causal: bool) -> tuple[np.ndarray, np.ndarray]:
    """Gives the block's output [n, D] and its weights [heads, n, m]."""
    query, key, value = (
        dense(source, f"{name}/{part}").reshape(len(source), HEADS, 64).swapaxes(0, 1)
        for source, part in ((x, "query"), (heard, "key"), (heard, "value"))
    )
    scores = query @ key.swapaxes(1, 2) / 8
    if causal:
        scores = np.where(np.tri(len(x), dtype=bool), scores, -np.inf)
    exp = np.exp(scores - scores.max(-1, keepdims=True))
    share = exp / exp.sum(-1, keepdims=True)
    return dense((share @ value).swapaxes(0, 1).reshape(len(x), WIDTH), f"{name}/out"), share


def encoded(mel: np.ndarray) -> np.ndarray:
    x = mel.T.astype(np.float64)
    for name, stride in (("encoder/conv1", 1), ("encoder/conv2", 2)):
        padded = np.pad(x, ((1, 1), (0, 0)))
        windows = np.stack([padded[i : i + 3] for i in range(0, len(x), stride)])
        x = gelu(np.einsum("tki,oik->to", windows, ARRAYS[f"{name}/weight"]) + ARRAYS[f"{name}/bias"])
    x = x + sinusoids(len(x), WIDTH)
    h = norm(x, "encoder/0/self/norm")
    x = x + attend(h, h, "encoder/0/self", False)[0]
    x = x + dense(gelu(dense(norm(x, "encoder/0/feed/norm"), "encoder/0/feed/up")), "encoder/0/feed/down")
    return norm(x, "encoder/norm")


def decoded(features: np.ndarray, tokens: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Gives logits [n, V] and the alignment heads' weights [n, heads, T] of all tokens at once, without a cache."""
    x = ARRAYS["decoder/embedding"][tokens] + ARRAYS["decoder/positions"][: len(tokens)]
    seen = {}
    for layer in (0, 1):
        name = f"decoder/{layer}"
        h = norm(x, f"{name}/self/norm")
        x = x + attend(h, h, f"{name}/self", True)[0]
        out, seen[layer] = attend(norm(x, f"{name}/cross/norm"), features, f"{name}/cross", False)
        x = x + out
        x = x + dense(gelu(dense(norm(x, f"{name}/feed/norm"), f"{name}/feed/up")), f"{name}/feed/down")
    logits = norm(x, "decoder/norm") @ ARRAYS["decoder/embedding"].T
    return logits, np.stack([seen[layer][head] for layer, head in ALIGNMENT], axis=1)


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> ModelCard:
    folder = tmp_path_factory.mktemp("whisper")
    added = [{"content": f"<|{name}|>", "id": 50 + place} for place, name in enumerate(SPECIAL)]
    tokenizer = folder / "given.json"
    tokenizer.write_text(json.dumps({"added_tokens": added}), encoding="utf-8")
    source = WhisperSource(ARRAYS, tokenizer, (3, 5), (7,), ALIGNMENT, {"model.bin": "0" * 64})
    import_whisper(source, folder / "whisper-small", ["float32", "float16", "dynamic"], "a test", prompt=True)
    return load_card(str(folder / "whisper-small"))


def model(card: ModelCard, variant: str) -> WhisperModel:
    route = RouteConfig(variants=(variant,))
    graphs = [Graph.load(card.paths(graph.role), graph, card.signature, route) for graph in card.graphs]
    return WhisperModel(card.framing_as(WhisperFraming), *graphs)


def test_the_card_says_what_the_weights_say(card: ModelCard) -> None:
    framing = card.framing_as(WhisperFraming)
    assert (framing.end_of_text, framing.no_speech, framing.no_timestamps) == (50, 55, 56)
    assert (framing.mel_bins, framing.max_tokens, framing.languages) == (MEL, PLACES, {})
    assert (framing.suppress, framing.suppress_at_begin, framing.alignment_heads) == ((3, 5), (7,), ALIGNMENT)
    assert sorted(card.variants) == ["dynamic", "float16", "float32"]
    assert card.sha256["source/model.bin"] == "0" * 64
    assert sorted(name for name in card.sha256 if not name.startswith("source/")) == sorted(
        f"{role}_{variant}.tflite" for role in ("encoder", "cross", "decoder", "prompt") for variant in card.variants
    )


@pytest.mark.parametrize(("variant", "tolerance"), [("float32", 1e-4), ("float16", 2e-2), ("dynamic", 0.25)])
def test_encoder_and_cached_decoder_compute_whispers_equations(card: ModelCard, variant: str, tolerance: float) -> None:
    rng = np.random.default_rng(6)
    clip = rng.standard_normal(FRAMES * 320).astype(np.float32) * 0.1
    whisper = model(card, variant)
    # Beyond 64 tokens, where the cache grows.
    tokens = rng.integers(0, TOKENS, 66).tolist()
    heard = whisper.hear(clip, FRAMES * 320)
    decoding = whisper.decode([heard])
    steps = [decoding.step(np.array([token], np.int32)) for token in tokens]
    logits, attention = decoded(encoded(log_mel(clip, FRAMES * 320, MEL)), tokens)
    np.testing.assert_allclose(np.concatenate([step[0] for step in steps]), logits, atol=tolerance)
    np.testing.assert_allclose(np.concatenate([step[1] for step in steps]), attention, atol=tolerance / 4)


@pytest.mark.parametrize(("variant", "tolerance"), [("float32", 1e-4), ("float16", 2e-2), ("dynamic", 0.25)])
@pytest.mark.parametrize("length", [1, 7, 65])
def test_a_prompt_in_one_go_leads_to_what_whispers_equations_say(
    card: ModelCard, variant: str, tolerance: float, length: int
) -> None:
    rng = np.random.default_rng(8)
    clips = [rng.standard_normal(FRAMES * 320).astype(np.float32) * 0.1 for _ in range(2)]
    whisper = model(card, variant)
    tokens = rng.integers(0, TOKENS, length + 3)
    decoding = whisper.decode([whisper.hear(clip, FRAMES * 320) for clip in clips])
    decoding.take(tokens[:length].astype(np.int32))
    steps = [decoding.step(np.array([token, token], np.int32)) for token in tokens[length:]]
    for row, clip in enumerate(clips):
        logits, attention = decoded(encoded(log_mel(clip, FRAMES * 320, MEL)), tokens.tolist())
        np.testing.assert_allclose([step[0][row] for step in steps], logits[length:], atol=tolerance)
        np.testing.assert_allclose([step[1][row] for step in steps], attention[length:], atol=tolerance / 4)


@pytest.mark.parametrize("variant", ["float32", "dynamic"])
def test_rows_of_a_decoding_are_those_of_single_ones_also_when_they_are_reordered(
    card: ModelCard, variant: str
) -> None:
    rng = np.random.default_rng(7)
    whisper = model(card, variant)
    heard = [whisper.hear(rng.standard_normal(6400).astype(np.float32) * 0.1, 6400) for _ in range(5)]
    tokens = rng.integers(0, TOKENS, (8, 5)).astype(np.int32)
    together = whisper.decode(heard)
    first = [together.step(row)[0] for row in tokens[:4]]
    order = [4, 1, 1]
    together.keep(order)
    later = [together.step(row[order])[0] for row in tokens[4:]]
    for place, row in enumerate(order):
        alone = whisper.decode([heard[row]])
        steps = [alone.step(tokens[step, [row]])[0][0] for step in range(8)]
        wanted = [logits[row] for logits in first] + [logits[place] for logits in later]
        assert np.array_equal(steps, wanted)
