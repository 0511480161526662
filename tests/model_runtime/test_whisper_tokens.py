"""Byte-level BPE with a vocabulary of all bytes and a handful of merges."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_runtime.errors import ModelError
from model_runtime.whisper_tokens import Tokenizer

MERGES = ["h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "l d"]
END_OF_TEXT = 256 + len(MERGES)


def visible(byte: int) -> str:
    """What stands for a byte, by the published table: visible Latin-1 as it is, the others from U+0100 on."""
    kept = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    return chr(byte) if byte in kept else chr(256 + [b for b in range(256) if b not in kept].index(byte))


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    pieces = [visible(byte) for byte in range(256)] + [merge.replace(" ", "") for merge in MERGES]
    model = {"vocab": {**{piece: i for i, piece in enumerate(pieces)}, "<|end|>": END_OF_TEXT}, "merges": MERGES}
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    path.write_text(json.dumps({"model": model}), encoding="utf-8")
    return Tokenizer(path, END_OF_TEXT)


def test_merges_are_made_in_their_order_within_a_word(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("hello world") == [259, 262, 263]


def test_merges_do_not_cross_from_one_word_into_the_next(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("hell o") == [258, ord(" "), ord("o")]


@given(st.text())
def test_what_is_encoded_is_decoded(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_special_tokens_give_no_text(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode([259, END_OF_TEXT, END_OF_TEXT + 7]) == "hello"


def words(tokenizer: Tokenizer, text: str, language: str) -> list[str]:
    tokens = tokenizer.encode(text)
    found = tokenizer.words(tokens, language)
    assert [word.first for word in found[1:]] == [word.end for word in found[:-1]]
    assert "".join(word.text for word in found) == text
    return [word.text for word in found]


def test_words_reach_to_the_next_space(tokenizer: Tokenizer) -> None:
    assert words(tokenizer, " Ill-disposed, he's - not!", "en") == [" Ill-disposed,", " he's", " - not!"]


def test_languages_without_spaces_have_a_word_per_character(tokenizer: Tokenizer) -> None:
    assert words(tokenizer, "你好。我", "zh") == ["你", "好。", "我"]


def test_a_character_of_several_tokens_stays_whole(tokenizer: Tokenizer) -> None:
    assert words(tokenizer, " é ü", "fr") == [" é", " ü"]


def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text('{"model": {}}', encoding="utf-8")
    with pytest.raises(ModelError, match=r"not a tokenizer\.json with a BPE vocabulary"):
        Tokenizer(path, 10)
