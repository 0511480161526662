"""Records that leave the engine: words and events. All are plain values, so two equal runs compare equal.

Positions are counts of samples of the session's input since its first sample (samples are the truth); `_ms`
fields derive from them.
"""

from typing import NamedTuple

import numpy as np

# Samples of clean audio.
PCM = np.dtype("<f4")


class Word(NamedTuple):
    """One recognised word; times in ms since the session's first sample, confidence 0..1."""

    text: str
    start_ms: int
    end_ms: int
    confidence: float


class SpeechBegin(NamedTuple):
    """Speech has begun: the first sample (padding included) of utterance number `utterance` (0, 1, ...)."""

    utterance: int
    start_samples: int


class SpeechEnd(NamedTuple):
    """Speech has ended: [start_samples, end_samples) is the utterance, padding included.

    `reason` is the rule that ended it: silence, length, or stream (the audio ended).
    """

    utterance: int
    start_samples: int
    end_samples: int
    reason: str


class TentativeEnd(NamedTuple):
    """Speech may have ended: what SpeechEnd and Final would say if the utterance were over.

    Either they follow, or SpeechResumed takes this back; it can come again then. `revision` counts with those of the
    partials. The text is that of the last partial, and there are no words, where the recogniser waits for the end.
    """

    utterance: int
    revision: int
    text: str
    words: tuple[Word, ...]
    start_samples: int
    end_samples: int


class SpeechResumed(NamedTuple):
    """The TentativeEnd before it was none: speech goes on, which is known at this position."""

    utterance: int
    revision: int
    position_samples: int


class Partial(NamedTuple):
    """What has been recognised so far of an utterance; `revision` rises within it, from 0 on.

    stability: share of the text, 0..1 of its characters from the first on, that the text one look before agrees on
    (local_agreement.stability); None where the recogniser does not say.
    """

    utterance: int
    revision: int
    text: str
    start_samples: int
    end_samples: int
    stability: float | None = None


class Final(NamedTuple):
    """The last word on an utterance. `revision` is above that of every partial."""

    utterance: int
    revision: int
    text: str
    words: tuple[Word, ...]
    confidence: float
    start_samples: int
    end_samples: int


class Enhanced(NamedTuple):
    """Clean audio at the session's own rate: float32 little-endian bytes, positioned by its first sample."""

    start_samples: int
    pcm: bytes

    def samples(self) -> np.ndarray:
        """Gives the audio as float32 [n], -1..1."""
        return np.frombuffer(self.pcm, PCM)


class UtteranceAudio(NamedTuple):
    """The next samples of an utterance, LINEAR16 at the models' rate; only from an engine that defers."""

    utterance: int
    pcm: bytes


class Utterance(NamedTuple):
    """An utterance that has been heard and still lacks its words; only from an engine that defers.

    It stands where its Final would, and `SpeechEngine.transcribe` turns it and its audio into that; where it is not
    over, it stands for a Partial, for `SpeechEngine.transcribe_so_far`. Its positions count samples at the models'
    rate; those of the Final are of the session's rate, which is `sample_rate_hz`.
    """

    utterance: int
    revision: int
    start_samples: int
    end_samples: int
    sample_rate_hz: int
    over: bool = True


Event = SpeechBegin | TentativeEnd | SpeechResumed | SpeechEnd | Partial | Final | Enhanced | UtteranceAudio | Utterance


class MadeBy(NamedTuple):
    """Which models and which devices made a result, as every result carries it.

    model: "unison-vad:1:float32+unison-asr-stream:1:int8"; device: "cpu", "npu", or, where stages differ or fell
    back, "vad=cpu,asr=cpu(delegate_missing)".
    """

    model: str
    device: str
