"""What Kokoro is asked to say, and by whom."""

import numpy as np
import pytest

pytest.importorskip("scipy", reason="examples are augmented by scipy")

from training import neural_voices
from training.words import WORDS


def test_every_word_is_spelt_in_both_accents() -> None:
    assert set(neural_voices.PHONEMES) == set(WORDS)
    assert all(len(accents) == 2 and all(accents) for accents in neural_voices.PHONEMES.values())


def test_a_mixture_of_one_style_with_itself_is_that_style() -> None:
    style = np.random.default_rng(1).standard_normal((1, 3, 256)).astype(np.float32)
    mixed = neural_voices.mixed_style(np.random.default_rng(2), np.repeat(style, 4, axis=0))
    np.testing.assert_allclose(mixed, style[0], atol=1e-5)


def test_speakers_differ_in_timbre_and_prosody_and_come_again_with_their_seed() -> None:
    styles = np.random.default_rng(3).standard_normal((5, 2, 256))
    one, again, other = (neural_voices.mixed_style(np.random.default_rng(seed), styles) for seed in (4, 4, 5))
    np.testing.assert_array_equal(one, again)
    assert np.all(one != other)


@pytest.mark.skipif(not neural_voices.is_installed(), reason="Kokoro is not installed (docs/training.md)")
def test_kokoro_knows_every_phoneme_of_the_words() -> None:
    spelt = {phoneme for accents in neural_voices.PHONEMES.values() for word in accents for phoneme in word}
    assert spelt <= set(neural_voices.alphabet())
