"""Word and character error rates over many rows; needs the extra `evaluate`."""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from model_runtime.errors import ConfigError

_NO_WORD = re.compile(r"[^\w\s']")


class TextErrors(NamedTuple):
    """Edits that turn texts into their references. rate: edits / reference_length, None without a reference."""

    reference_length: int
    substitutions: int
    insertions: int
    deletions: int

    @property
    def edits(self) -> int:
        """All edits."""
        return self.substitutions + self.insertions + self.deletions

    @property
    def rate(self) -> float | None:
        """Edits for each word (or character) of the reference."""
        return self.edits / self.reference_length if self.reference_length else None


def word_errors(references: Sequence[str], texts: Sequence[str]) -> TextErrors:
    """Gives the word errors of texts, summed over all pairs.

    Raises:
        ConfigError: the extra is not installed.
    """
    return _errors("process_words", references, texts)


def character_errors(references: Sequence[str], texts: Sequence[str]) -> TextErrors:
    """Gives the character errors of texts, blanks included, summed over all pairs."""
    return _errors("process_characters", references, texts)


def normalised(text: str) -> str:
    """Gives a text as it is compared: NFKC, lower case, without punctuation, one blank between words."""
    text = unicodedata.normalize("NFKC", text).lower()
    return " ".join(_NO_WORD.sub(" ", text).split())


def _errors(process: str, references: Sequence[str], texts: Sequence[str]) -> TextErrors:
    try:
        import jiwer
    except ImportError as error:
        raise ConfigError("error rates need jiwer: pip install 'unison-speech[evaluate]'") from error
    if not references:
        return TextErrors(0, 0, 0, 0)
    found = getattr(jiwer, process)(list(references), list(texts))
    length = found.hits + found.substitutions + found.deletions
    return TextErrors(length, found.substitutions, found.insertions, found.deletions)
