"""Partials of models that hear utterances whole: what is said so far is decoded again and again, and compared."""

import re
from collections.abc import Sequence
from itertools import takewhile

# Words; where a script has no spaces (kana and Han), characters.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_UNIT = re.compile(rf"\s*(?:[{_UNSPACED}]|[^\s{_UNSPACED}]+)")


def agreed(before: str, now: str) -> str:
    """Gives the longest beginning that two decodings in a row share, as the later one writes it.

    The end of audio that is cut off in mid-sentence is guessed, and guessed anew with more audio; what has survived
    that once mostly stays. Case and marks do not count, since they depend on what comes after. This is LocalAgreement
    with n = 2 (Liu, Spanakis, Niehues 2020; with Whisper: Macháček, Dabre, Bojar 2023), on words.
    """
    units = _UNIT.findall(now)
    same = takewhile(lambda pair: _plain(pair[0]) == _plain(pair[1]), zip(_UNIT.findall(before), units, strict=False))
    return "".join(units[: sum(1 for _ in same)]).strip()


def stability(before: str, now: str) -> float:
    """Gives the share of a text, 0..1 of its characters, that it and the text before it agree on."""
    return round(len(agreed(before, now)) / len(now), 4) if now else 0.0


def newly_passed(interval_samples: int, before: int, now: int) -> Sequence[int]:
    """Gives the multiples of the interval in (before, now] by their number 1, 2, ..; none where the interval is 0."""
    return range(before // interval_samples + 1, now // interval_samples + 1) if interval_samples else ()


def _plain(unit: str) -> str:
    return "".join(filter(str.isalnum, unit.casefold())) or unit.strip()
