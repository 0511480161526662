"""Decodings of the toy beside this file: a text that goes before, in one go and token by token."""

from pathlib import Path

import numpy as np
import pytest

from model_runtime.card import load_card
from model_runtime.devices import RouteConfig
from model_runtime.graph import Graph
from model_runtime.whisper_framing import WhisperFraming
from model_runtime.whisper_model import WhisperModel

WINDOW = 160_000
TEXT = np.array([5, 11, 0, 7, 30, 2, 19], np.int32)


@pytest.fixture(scope="module")
def graphs() -> list[Graph]:
    card, route = load_card(str(Path(__file__).parent / "whisper_toy")), RouteConfig(variants=("float16",))
    return [Graph.load(card.paths(graph.role), graph, card.signature, route) for graph in card.graphs]


@pytest.fixture(scope="module")
def framing() -> WhisperFraming:
    return load_card(str(Path(__file__).parent / "whisper_toy")).framing_as(WhisperFraming)


@pytest.fixture
def clips() -> list[np.ndarray]:
    return [np.random.default_rng(seed).standard_normal(48_000).astype(np.float32) * 0.1 for seed in (1, 2)]


def test_a_text_in_one_go_leads_where_it_leads_token_by_token(
    framing: WhisperFraming, graphs: list[Graph], clips: list[np.ndarray]
) -> None:
    in_one_go, by_token = WhisperModel(framing, *graphs), WhisperModel(framing, *graphs[:3])
    after = []
    for model in (in_one_go, by_token):
        decoding = model.decode([model.hear(clip, WINDOW) for clip in clips])
        decoding.take(TEXT)
        after.append(decoding.step(np.array([31, 31], np.int32)))
    for one, other in zip(*after, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-4)
    assert not np.allclose(after[0][0][0], after[0][0][1], atol=1e-2)


def test_a_text_leads_to_the_same_bits_alone_and_beside_others(
    framing: WhisperFraming, graphs: list[Graph], clips: list[np.ndarray]
) -> None:
    model = WhisperModel(framing, *graphs)
    heard = [model.hear(clip, WINDOW) for clip in clips]
    found = []
    for rows in ([0], [1, 0, 0]):
        decoding = model.decode([heard[row] for row in rows])
        decoding.take(TEXT)
        found.append(decoding.step(np.full(len(rows), 31, np.int32))[0])
    assert np.array_equal(found[1][1:], found[0].repeat(2, axis=0))
