"""From decoded tokens to words with times and confidence."""

import math
from collections.abc import Sequence

from model_runtime.ctc import Token, Tokens
from model_runtime.lexicon import WORD_START
from model_runtime.records import Word


class WordTimes:
    """Where frames lie: frame i of an utterance that starts at `start` covers `frame_samples` from there."""

    def __init__(self, tokens: Sequence[str], frame_samples: int, delay_samples: int, sample_rate_hz: int) -> None:
        self._tokens = tuple(tokens)
        self._frame_samples = frame_samples
        self._delay_samples = delay_samples
        self._rate_hz = sample_rate_hz

    def text(self, tokens: Tokens) -> str:
        """Gives the text of tokens: "▁" is a space, characters of a token stand as they are."""
        return "".join(self._tokens[token.id] for token in tokens).replace(WORD_START, " ").strip()

    def words(self, tokens: Tokens, start: int, end: int) -> tuple[Word, ...]:
        """Gives the words of an utterance [start, end) (samples at the models' rate), times inside it and in order."""
        groups: list[list[Token]] = []
        for token in tokens:
            piece = self._tokens[token.id]
            if not groups or piece.startswith((WORD_START, " ")):
                groups.append([])
            if piece != " ":
                groups[-1].append(token)
        words, floor = [], start
        for group in filter(None, groups):
            begin = self._clipped(start + group[0].peak_frame * self._frame_samples, floor, end)
            floor = self._clipped(start + (group[-1].last_frame + 1) * self._frame_samples, begin, end)
            confidence = math.exp(sum(token.log_prob for token in group) / len(group))
            words.append(Word(self.text(tuple(group)), self._ms(begin), self._ms(floor), round(confidence, 4)))
        return tuple(words)

    def end_of(self, token: Token, start: int) -> int:
        """Gives where a token's sound ends, in samples at the models' rate."""
        return max(start, start + (token.last_frame + 1) * self._frame_samples - self._delay_samples)

    def begin_of(self, token: Token, start: int) -> int:
        """Gives where a token's sound begins, in samples at the models' rate."""
        return max(start, start + token.peak_frame * self._frame_samples - self._delay_samples)

    def samples(self, ms: int) -> int:
        """Gives the position of a time in samples at the models' rate."""
        return ms * self._rate_hz // 1000

    def _clipped(self, position: int, low: int, high: int) -> int:
        return max(low, min(position - self._delay_samples, high))

    def _ms(self, samples: int) -> int:
        return samples * 1000 // self._rate_hz
