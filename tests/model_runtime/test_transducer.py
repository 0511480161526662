"""The transducer's search against a sum over every alignment of every text, on small made distributions."""

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model_runtime.calls import States, drive
from model_runtime.ctc import Tokens
from model_runtime.lexicon import Lexicon
from model_runtime.transducer import RowsKernel, TransducerDecoder, TransducerState

TOKENS = ("<blank>", "▁a", "b", "▁c")
FRAMES, WIDTH = 3, 5
# Of float32, in log probability: of two texts that close, the search may take the second.
ROUNDING = 1e-4


class _Table:
    """A prediction network and a joiner as tables: what is predicted depends on all tokens so far.

    No token is so improbable that the search would leave it out.
    """

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.sound = rng.standard_normal((FRAMES, WIDTH)).astype(np.float32)
        self.mix = (0.7 * rng.standard_normal((WIDTH, len(TOKENS)))).astype(np.float32)

    def initial_states(self, n: int) -> States:
        return (np.zeros((n, WIDTH), np.float32),)

    def run(self, inputs: dict[str, np.ndarray], states: States) -> tuple[dict[str, np.ndarray], States]:
        if "token" in inputs:
            memory = 0.5 * states[0] + np.cos(np.arange(1, WIDTH + 1) * (1 + inputs["token"]))
            return {"prediction": memory.astype(np.float32)}, (memory.astype(np.float32),)
        logits = np.tanh(inputs["encoding"] + inputs["prediction"]) @ self.mix
        return {"log_probs": logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)}, ()

    def log_probs(self, text: Sequence[int]) -> np.ndarray:
        """[frames, tokens] after a text."""
        states = self.initial_states(1)
        for token in (0, *text):
            outputs, states = self.run({"token": np.array([[token]])}, states)
        return self.run({"encoding": self.sound, "prediction": np.tile(outputs["prediction"], (FRAMES, 1))}, ())[0][
            "log_probs"
        ]

    def score(self, text: Sequence[int]) -> float:
        """The log probability of a text: the sum over the frames at which its tokens are said."""
        tables, paths = [self.log_probs(text[:n]) for n in range(len(text) + 1)], []
        for spoken in combinations(range(FRAMES), len(text)):
            said, score = 0, 0.0
            for frame in range(FRAMES):
                score += float(tables[said][frame, text[said] if frame in spoken else 0])
                said += frame in spoken
            paths.append(score)
        return float(np.logaddexp.reduce(paths))


def decoder(table: Any, lexicon: Lexicon, beam: int) -> TransducerDecoder:
    return TransducerDecoder(RowsKernel(table, "prediction"), RowsKernel(table, "log_probs"), lexicon, beam)


def ids(tokens: Tokens) -> list[int]:
    return [token.id for token in tokens]


@given(seed=st.integers(0, 10_000), cut=st.integers(0, FRAMES))
@settings(max_examples=60, deadline=None)
def test_a_wide_beam_finds_the_most_probable_text_with_its_probability(seed: int, cut: int) -> None:
    table = _Table(seed)
    search = decoder(table, Lexicon({}, TOKENS), beam=200)
    state: TransducerState = drive(search.advance(search.start(), table.sound[:cut]))
    state = drive(search.advance(state, table.sound[cut:]))
    texts = [text for n in range(FRAMES + 1) for text in product((1, 2, 3), repeat=n)]
    found = tuple(ids(search.finish(state)))
    assert table.score(found) == pytest.approx(max(map(table.score, texts)), abs=ROUNDING)
    assert state.hypotheses[0].score == pytest.approx(table.score(found), abs=ROUNDING)
    assert state.frames == FRAMES


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_a_beam_of_one_takes_the_best_token_of_every_frame(seed: int) -> None:
    table = _Table(seed)
    search = decoder(table, Lexicon({}, TOKENS), beam=1)
    state = drive(search.advance(search.start(), table.sound))
    text: list[int] = []
    times: list[int] = []
    for frame in range(FRAMES):
        token = int(table.log_probs(text)[frame].argmax())
        if token:
            text.append(token)
            times.append(frame)
    assert ids(state.tokens()) == text
    assert [token.peak_frame for token in state.tokens()] == times


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_a_lexicon_lets_only_its_words_through(seed: int) -> None:
    table = _Table(seed)
    search = decoder(table, Lexicon({"ab": ["▁a", "b"], "c": ["▁c"]}, TOKENS), beam=200)
    state = drive(search.advance(search.start(), table.sound))
    allowed = [(), (1, 2), (3,), (1, 2, 3), (3, 1, 2), (3, 3), (3, 3, 3)]
    found = tuple(ids(search.finish(state)))
    assert found in allowed
    assert table.score(found) == pytest.approx(max(map(table.score, allowed)), abs=ROUNDING)
