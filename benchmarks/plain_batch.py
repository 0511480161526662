"""The batch recipe written out as a plain loop over bare interpreters, file after file: the batch job's limit."""

from collections.abc import Sequence

import numpy as np

from benchmarks.plain_loop import Bare, PlainLoop, Span
from model_runtime.card import UtteranceCtcFraming, load_card


class PlainBatch:
    """denoise, vad and full-context asr of the packaged models over whole recordings, every call of one row."""

    def __init__(self, variant: str = "float32") -> None:
        asr = load_card("unison-asr-batch")
        self._stages = PlainLoop(variant)
        self._features, self._encoder = (Bare(asr, role, variant) for role in ("features", "encoder"))
        self._ctc = asr.framing_as(UtteranceCtcFraming)

    def run(self, audio: np.ndarray, spans: Sequence[Span]) -> list[int]:
        """Cleans audio (float32 [n], 16 kHz), judges all of it, recognises the spans; gives the best tokens."""
        for stage in (self._stages.denoise(audio), self._stages.judge(audio)):
            next(stage)
            stage.send(len(audio))
        return [token for begin, end in spans for token in self._recognise(audio[begin:end])]

    def _recognise(self, utterance: np.ndarray) -> list[int]:
        framing = self._ctc
        multiple = framing.pad_multiple_samples
        padded = np.zeros(framing.context_samples + -(-len(utterance) // multiple) * multiple, np.float32)
        padded[framing.context_samples : framing.context_samples + len(utterance)] = utterance
        features, _ = self._features(padded[None], ())
        log_probs, _ = self._encoder(features, ())
        best = log_probs[0].argmax(axis=1).tolist()
        return [token for last, token in zip([0, *best], best, strict=False) if token and token != last]
