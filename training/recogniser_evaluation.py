"""Figures for a recogniser of any kind, from its card and by the runtime's own asr stage."""

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from model_runtime.assembly import assemble
from model_runtime.calls import Steps, drive_in_lock_step
from model_runtime.devices import RouteConfig
from model_runtime.recipe import AsrConfig, Recipe
from model_runtime.recognizer import Recognizer
from model_runtime.records import Final
from training import asr_sets
from training.word_errors import error_rate

SAMPLE_RATE_HZ = 16000
_NOISE_SECONDS = 600
_ROWS = 25


def _recogniser(folder: Path, variant: str, decoder: str) -> Recognizer:
    recipe = Recipe("measured", asr=AsrConfig(str(folder), decoder=decoder, partial_interval_ms=0))
    recognizer = assemble(recipe, RouteConfig(variants=(variant,))).recognizer
    if recognizer is None:
        raise ValueError(f"{folder} holds no recogniser")
    return recognizer


def _hear(recognizer: Recognizer, pcm: np.ndarray) -> Steps[Final]:
    state = yield from recognizer.push(recognizer.start(0, 0), pcm, [])
    final = yield from recognizer.finish(state, len(pcm), 0)
    return final


def _finals(recognizer: Recognizer, clips: Sequence[np.ndarray]) -> list[Final]:
    return drive_in_lock_step([partial(_hear, recognizer, pcm) for pcm in clips], _ROWS)


def _lag_samples(utterances: list[asr_sets.Utterance], finals: list[Final]) -> int:
    """How far the end of the last word lies behind the end of the speech, on average, where all is recognised."""
    pairs = zip(utterances, finals, strict=True)
    right = [(u, f) for u, f in pairs if f.words and [word.text for word in f.words] == u.words]
    lags = [f.words[-1].end_ms * SAMPLE_RATE_HZ // 1000 - u.end for u, f in right]
    return round(float(np.mean(lags))) if lags else 0


def _cpu_ms_per_second(recognizer: Recognizer) -> float:
    """CPU time for a second of audio, batch 1, in a recording of 8 s."""
    pcm = 0.05 * np.random.default_rng(1).standard_normal(8 * SAMPLE_RATE_HZ).astype(np.float32)
    _finals(recognizer, [pcm])
    times = []
    for _ in range(5):
        start = time.process_time()
        _finals(recognizer, [pcm])
        times.append(time.process_time() - start)
    return 1000.0 * float(np.median(times)) / 8.0


def evaluate(folder: Path, variant: str, cache: Path, shared: Path) -> dict[str, float]:
    """All figures of one variant of the recogniser whose card is in a folder.

    Returns:
        Word error rates in percent, with the lexicon's beam unless called greedy; words per minute in noise alone; the
        lag of word ends behind those of the speech, beyond what the card says already.
    """
    best, free = (_recogniser(folder, variant, decoder) for decoder in ("prefix_beam", "greedy"))
    figures: dict[str, float] = {}
    for name, utterances in asr_sets.all_sets(cache, shared).items():
        references = [utterance.words for utterance in utterances]
        for label, recognizer in (("wer", best), ("wer_greedy", free)):
            finals = _finals(recognizer, [utterance.pcm for utterance in utterances])
            figures[f"{name}_{label}"] = round(error_rate(references, [final.text.split() for final in finals]), 1)
            if name == "person" and recognizer is best:
                figures["lag_samples"] = _lag_samples(utterances, finals)
    silent = _finals(best, [utterance.pcm for utterance in asr_sets.only_noise(_NOISE_SECONDS)])
    words = sum(len(final.words) for final in silent)
    figures["false_words_per_minute_of_noise"] = round(words / (_NOISE_SECONDS / 60), 2)
    figures["cpu_ms_per_second"] = round(_cpu_ms_per_second(best), 2)
    return figures
