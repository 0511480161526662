"""Searches over a made language of five tokens, compared with the enumeration of all its sentences."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest

from model_runtime.whisper_beam import search_beam
from model_runtime.whisper_decode import Hypothesis, Prefix, search_rows
from model_runtime.whisper_framing import WhisperFraming
from model_runtime.whisper_rules import TokenRules, probability

END = 4
LIMIT = 4
FRAMING = WhisperFraming(
    "", END, END + 1, 6, 7, 8, 9, 10, suppress=(3,), suppress_at_begin=(END,), alignment_heads=((0, 0),)
)
TOKENS = 12


class Language:
    """Logits that depend on the row's clip and on all of its tokens so far: float32 [n, 12]."""

    def __init__(self, clips: Sequence[int]) -> None:
        self.histories: list[tuple[int, ...]] = [(clip,) for clip in clips]
        self.sizes: list[int] = []

    def prefix(self) -> Prefix:
        return Prefix(*self._following())

    def step(self, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.sizes.append(len(tokens))
        self.histories = [(*history, int(token)) for history, token in zip(self.histories, tokens, strict=True)]
        return self._following()

    def keep(self, rows: Sequence[int]) -> None:
        self.histories = [self.histories[row] for row in rows]

    def _following(self) -> tuple[np.ndarray, np.ndarray]:
        logits = np.stack([logits_after(history) for history in self.histories])
        attention = np.array([[[float(len(history))]] for history in self.histories], np.float32)
        return logits, attention


def logits_after(history: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(history).normal(0, 2, TOKENS).astype(np.float32)


def log_prob(clip: int, tokens: Sequence[int]) -> float:
    """Of a sentence, by its definition: the suppressed and special tokens take no part."""
    total, history = 0.0, (clip,)
    for place, token in enumerate(tokens):
        allowed = [t for t in (0, 1, 2, END) if place or t != END]
        logits = logits_after(history).astype(np.float64)
        total += logits[token] - math.log(sum(math.exp(logits[t]) for t in allowed))
        history = (*history, token)
    return total


def best_sentence(clip: int) -> tuple[int, ...]:
    """Of all sentences up to the limit, the one with the largest mean over its tokens and its end."""
    ended = [(*said, END) for length in range(1, LIMIT) for said in itertools.product((0, 1, 2), repeat=length)]
    cut = list(itertools.product((0, 1, 2), repeat=LIMIT))
    best = max(ended + cut, key=lambda s: log_prob(clip, s) / (len(s) if s[-1] == END else len(s) + 1))
    return tuple(token for token in best if token != END)


def rows_of(clips: Sequence[int], temperature: float = 0.0, limit: int = LIMIT) -> tuple[list[Hypothesis], Language]:
    language = Language(clips)
    draws = [np.random.default_rng([clip, 9]) for clip in clips]
    found = search_rows(language, language.prefix(), TokenRules(FRAMING), END, limit, temperature, draws)
    return found, language


def test_a_beam_as_wide_as_the_language_finds_the_best_sentence_of_all() -> None:
    beam = 3**LIMIT + 3 ** (LIMIT - 1)
    for clip in range(4):
        language = Language([clip] * beam)
        (found,) = search_beam(language, language.prefix(), TokenRules(FRAMING), END, LIMIT, beam)
        assert found.tokens == best_sentence(clip)
        said = [*found.tokens, END] if found.ended else found.tokens
        assert sum(found.log_probs) == pytest.approx(log_prob(clip, said), abs=1e-4)


def test_a_beam_of_one_takes_the_best_token_each_time() -> None:
    for clip in range(8):
        language = Language([clip])
        (found,) = search_beam(language, language.prefix(), TokenRules(FRAMING), END, LIMIT, 1)
        assert found.tokens == rows_of([clip])[0][0].tokens


def test_clips_of_one_beam_search_do_not_see_each_other() -> None:
    language = Language([1, 1, 1, 2, 2, 2, 3, 3, 3])
    together = search_beam(language, language.prefix(), TokenRules(FRAMING), END, LIMIT, 3)
    for clip, found in zip((1, 2, 3), together, strict=True):
        alone = Language([clip] * 3)
        (single,) = search_beam(alone, alone.prefix(), TokenRules(FRAMING), END, LIMIT, 3)
        assert (single.tokens, single.log_probs) == (found.tokens, found.log_probs)


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_rows_that_are_sought_together_are_those_sought_alone(temperature: float) -> None:
    clips = list(range(16))
    together, _ = rows_of(clips, temperature)
    for clip, found in zip(clips, together, strict=True):
        (alone,), _ = rows_of([clip], temperature)
        assert (alone.tokens, alone.log_probs) == (found.tokens, found.log_probs)
        assert [value.item() for value in found.attention] == list(range(1, len(found.log_probs) + 1))


def test_rows_that_have_ended_are_left_out_once_they_are_half() -> None:
    found, language = rows_of(list(range(16)), limit=40)
    lengths = [len(one.log_probs) for one in found]
    left = 16
    for step, size in enumerate(language.sizes, start=1):
        going = sum(length > step for length in lengths)
        left = going if 2 * going <= left else left
        assert size == left
    assert language.sizes[-1] == 1


def test_drawn_tokens_follow_the_probabilities() -> None:
    clips = [5] * 4000
    language = Language(clips)
    draws = [np.random.default_rng([row, 1]) for row in range(len(clips))]
    found = search_rows(language, language.prefix(), TokenRules(FRAMING), END, 1, 1.0, draws)
    for token in (0, 1, 2):
        share = sum(one.tokens == (token,) for one in found) / len(found)
        # Four standard deviations of such a count.
        assert share == pytest.approx(math.exp(log_prob(5, [token])), abs=4 * 0.5 / math.sqrt(len(found)))


def test_suppressed_and_special_tokens_and_an_empty_text_have_no_probability() -> None:
    first, later = (TokenRules(FRAMING).log_probs(np.zeros(TOKENS, np.float32), first) for first in (True, False))
    np.testing.assert_allclose(np.exp(first), [1 / 3] * 3 + [0] * 9, atol=1e-6)
    np.testing.assert_allclose(np.exp(later), [0.25] * 3 + [0, 0.25] + [0] * 7, atol=1e-6)


def test_the_probability_of_a_token_leaves_none_out() -> None:
    assert probability(np.log(np.array([1, 2, 5], np.float32)), 2) == pytest.approx(0.625)


class Parrot(Language):
    """Says token 0 for ever."""

    def _following(self) -> tuple[np.ndarray, np.ndarray]:
        n = len(self.histories)
        return np.tile(np.eye(1, TOKENS, 0, dtype=np.float32) * 20, (n, 1)), np.zeros((n, 1, 1), np.float32)


def test_a_row_that_loops_is_left_as_soon_as_it_does() -> None:
    parrot = Parrot([1])
    (found,) = search_rows(parrot, parrot.prefix(), TokenRules(FRAMING), END, 200)
    assert found.tokens == (0,) * 12
    assert not found.ended


def test_a_beam_prefers_what_does_not_loop() -> None:
    parrot = Parrot([1, 1, 1])
    (found,) = search_beam(parrot, parrot.prefix(), TokenRules(FRAMING), END, 40, 3)
    assert found.ended
