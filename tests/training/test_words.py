"""The pieces spell the words, and the committed cards have the same ones."""

import pytest

from model_runtime.card import load_card
from training.words import BLANK, LEXICON, TOKENS, WORD_START, WORDS, encode


@pytest.mark.parametrize("word", WORDS)
def test_pieces_of_a_word_spell_it(word: str) -> None:
    onset, rime = LEXICON[word]
    assert onset + rime == WORD_START + word


def test_blank_is_the_first_of_37_distinct_tokens() -> None:
    assert TOKENS[0] == BLANK
    assert len(set(TOKENS)) == len(TOKENS) == 37


def test_words_that_share_a_rime_share_its_token() -> None:
    assert encode(["one"])[1] == encode(["nine"])[1]


@pytest.mark.parametrize("name", ["unison-asr-stream", "unison-asr-transducer", "unison-asr-batch"])
def test_cards_have_the_tokens_and_the_lexicon(name: str) -> None:
    card = load_card(name)
    assert list(card.tokens) == TOKENS
    assert {word: list(pieces) for word, pieces in card.lexicon.items()} == LEXICON
