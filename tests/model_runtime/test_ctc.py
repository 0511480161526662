"""CTC decoding against its definition: the sum over all alignments, enumerated."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model_runtime.ctc import START, GreedyDecoder, PrefixBeamDecoder, Tokens
from model_runtime.lexicon import Lexicon

TOKENS = ("<blank>", "▁a", "b", "▁c")
FREE = Lexicon({}, TOKENS)
WORDS = Lexicon({"ab": ("▁a", "b"), "c": ("▁c",)}, TOKENS)


def log_probs(frames: int, seed: int) -> np.ndarray:
    logits = np.random.default_rng(seed).normal(0, 1.0, (frames, len(TOKENS)))
    return np.log(np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)).astype(np.float32)


def collapsed(path: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(token for token, _ in itertools.groupby(path) if token)


def exact_scores(rows: np.ndarray) -> dict[tuple[int, ...], float]:
    """Every text's probability, by enumerating every alignment."""
    scores: dict[tuple[int, ...], float] = {}
    for path in itertools.product(range(len(TOKENS)), repeat=len(rows)):
        text = collapsed(path)
        probability = math.exp(sum(float(rows[frame, token]) for frame, token in enumerate(path)))
        scores[text] = scores.get(text, 0.0) + probability
    return scores


def ids(tokens: Tokens) -> tuple[int, ...]:
    return tuple(token.id for token in tokens)


@pytest.mark.parametrize("seed", range(8))
def test_prefix_beam_scores_are_the_sums_over_all_alignments(seed: int) -> None:
    rows = log_probs(5, seed)
    state = PrefixBeamDecoder(FREE, beam=10_000).advance(START, rows)
    exact = exact_scores(rows)
    found = {ids(hypothesis.tokens): math.exp(hypothesis.score()) for hypothesis in state.hypotheses}
    likely = {text: score for text, score in exact.items() if score > 1e-4}
    assert {text: found[text] for text in likely} == pytest.approx(likely, rel=1e-4)
    assert ids(state.tokens()) == max(exact, key=lambda text: exact[text])


@pytest.mark.parametrize("seed", range(8))
def test_prefix_beam_with_a_lexicon_gives_the_best_text_of_whole_words(seed: int) -> None:
    rows = log_probs(5, seed)
    decoder = PrefixBeamDecoder(WORDS, beam=10_000)
    exact = exact_scores(rows)
    whole = {text for text in exact if WORDS.longest_whole(text) == len(text)}
    best = max(whole, key=lambda text: exact[text])
    assert ids(decoder.finish(decoder.advance(START, rows))) == best


@given(seed=st.integers(0, 1000), cuts=st.lists(st.integers(0, 12), max_size=4))
@settings(max_examples=40, deadline=None)
@pytest.mark.parametrize("decoder", [GreedyDecoder(), PrefixBeamDecoder(WORDS, 4)], ids=["greedy", "beam"])
def test_decoding_in_pieces_is_decoding_at_once(
    decoder: GreedyDecoder | PrefixBeamDecoder, seed: int, cuts: list[int]
) -> None:
    rows = log_probs(12, seed)
    state = START
    for piece in np.split(rows, sorted(cuts)):
        state = decoder.advance(state, piece)
    assert state == decoder.advance(START, rows)


def test_greedy_merges_repeats_and_drops_blanks() -> None:
    rows = np.full((6, 4), -9.0, np.float32)
    for frame, token in enumerate((1, 1, 0, 1, 2, 2)):
        rows[frame, token] = -0.1 * (frame + 1)
    tokens = GreedyDecoder().advance(START, rows).tokens()
    assert [(t.id, t.peak_frame, t.last_frame) for t in tokens] == [(1, 0, 1), (1, 3, 3), (2, 4, 5)]
    assert [t.log_prob for t in tokens] == pytest.approx([-0.1, -0.4, -0.5])


def test_a_token_peaks_at_its_likeliest_frame() -> None:
    rows = np.full((4, 4), -9.0, np.float32)
    rows[0, 0], rows[1, 1], rows[2, 1], rows[3, 0] = -0.1, -0.9, -0.2, -0.1
    token = PrefixBeamDecoder(FREE, 8).advance(START, rows).tokens()[0]
    assert (token.id, token.peak_frame) == (1, 2)
    assert token.log_prob == pytest.approx(-0.2)


def test_the_last_word_is_dropped_when_it_is_not_whole() -> None:
    rows = np.full((3, 4), -30.0, np.float32)
    rows[0, 3], rows[1, 0], rows[2, 1] = -0.01, -0.01, -0.01
    decoder = PrefixBeamDecoder(WORDS, beam=1)
    assert ids(decoder.finish(decoder.advance(START, rows))) == (3,)


def test_no_frames_give_no_tokens() -> None:
    decoder = PrefixBeamDecoder(WORDS, 4)
    assert decoder.finish(decoder.advance(START, np.zeros((0, 4), np.float32))) == ()
