"""Whisper's byte-level BPE: text of tokens, tokens of text, and the words that tokens make."""

import json
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from model_runtime.errors import ModelError

# Languages written without spaces, whose words are therefore single characters.
_WITHOUT_SPACES = frozenset({"zh", "ja", "th", "lo", "my", "yue"})
_CONTRACTIONS = ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d")


class TokenWord(NamedTuple):
    """A word as a run of tokens, [first, end) of a list, with the spaces and marks around it."""

    text: str
    first: int
    end: int


class Tokenizer:
    """Reads the tokenizer.json of a Whisper model; tokens from `end_of_text` on are special and give no text."""

    def __init__(self, path: Path, end_of_text: int) -> None:
        try:
            model = json.loads(path.read_text(encoding="utf-8"))["model"]
            vocabulary: dict[str, int] = model["vocab"]
            merges = [tuple(pair.split(" ") if isinstance(pair, str) else pair) for pair in model["merges"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelError(f"{path}: not a tokenizer.json with a BPE vocabulary: {error!r}") from error
        self._ids = vocabulary
        self._ranks = {pair: rank for rank, pair in enumerate(merges)}
        byte_of = {character: byte for byte, character in _characters_of_bytes().items()}
        self._bytes = {
            number: bytes(byte_of[character] for character in piece)
            for piece, number in vocabulary.items()
            if number < end_of_text and all(character in byte_of for character in piece)
        }

    def decode(self, tokens: Iterable[int]) -> str:
        """Gives the text of tokens; bytes that are no whole character give U+FFFD."""
        return b"".join(self._bytes.get(token, b"") for token in tokens).decode("utf-8", "replace")

    def encode(self, text: str) -> list[int]:
        """Gives the tokens of a text; special tokens are not read from it."""
        characters = _characters_of_bytes()
        tokens = []
        for piece in _pieces(text):
            symbols = self._merged([characters[byte] for byte in piece.encode("utf-8")])
            tokens += [self._ids[symbol] for symbol in symbols]
        return tokens

    def words(self, tokens: Sequence[int], language: str) -> list[TokenWord]:
        """Gives the words of tokens: none is left out or used twice, and their texts make the whole text.

        A word reaches to the next space, or is one character where a language has none. Marks that stand alone go
        with the word behind them, others with the one before.
        """
        spaced = language not in _WITHOUT_SPACES
        words: list[TokenWord] = []
        for part in self._characters(tokens):
            begins = part.text.startswith(" ") if spaced else is_spoken(part.text)
            if not words or (begins and is_spoken(words[-1].text)):
                words.append(part)
            else:
                words[-1] = TokenWord(words[-1].text + part.text, words[-1].first, part.end)
        return words

    def _merged(self, symbols: list[str]) -> list[str]:
        while len(symbols) > 1:
            pairs = list(pairwise(symbols))
            best = min(pairs, key=lambda pair: self._ranks.get(pair, len(self._ranks)))
            if best not in self._ranks:
                break
            merged, at = [], 0
            while at < len(symbols):
                joined = at + 1 < len(symbols) and (symbols[at], symbols[at + 1]) == best
                merged.append(symbols[at] + symbols[at + 1] if joined else symbols[at])
                at += 2 if joined else 1
            symbols = merged
        return symbols

    def _characters(self, tokens: Sequence[int]) -> list[TokenWord]:
        """Gives the smallest runs of tokens that are whole characters."""
        parts, first = [], 0
        for end in range(1, len(tokens) + 1):
            text = self.decode(tokens[first:end])
            if "\N{REPLACEMENT CHARACTER}" not in text or end == len(tokens):
                parts.append(TokenWord(text, first, end))
                first = end
        return parts


def is_spoken(text: str) -> bool:
    """Tells whether there is more to a text than marks and spaces."""
    return any(character.isalnum() or character == "\N{REPLACEMENT CHARACTER}" for character in text)


@cache
def _characters_of_bytes() -> dict[int, str]:
    """Byte -> the character that stands for it in the vocabulary: itself where it is visible, else from U+0100 on."""
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in visible]
    return {**{byte: chr(byte) for byte in visible}, **{byte: chr(256 + place) for place, byte in enumerate(hidden)}}


def _kind(character: str) -> str:
    if character.isspace():
        return " "
    major = unicodedata.category(character)[0]
    return major if major in "LN" else "other"


def _pieces(text: str) -> list[str]:
    """Gives the pieces that BPE merges within: contractions, and runs of letters, digits, marks or white space.

    A run takes one space before it along.
    """
    pieces, at = [], 0
    while at < len(text):
        contraction = next((word for word in _CONTRACTIONS if text.startswith(word, at)), None)
        if contraction:
            pieces.append(contraction)
            at += len(contraction)
            continue
        start = at + 1 if text[at] == " " and at + 1 < len(text) and _kind(text[at + 1]) != " " else at
        end = start + 1
        while end < len(text) and _kind(text[end]) == _kind(text[start]):
            end += 1
        if _kind(text[start]) == " " and end < len(text) and end - start > 1:
            # The last white space of a run belongs to what follows.
            end -= 1
        pieces.append(text[at:end])
        at = end
    return pieces
