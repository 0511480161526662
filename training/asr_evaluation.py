"""Figures for a recogniser's .tflite files: word errors, false words, lag of the spikes, time on one thread."""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from training import asr_sets
from training.asr_sets import Utterance
from training.decoding import bound, error_rate, greedy, words_of
from training.filterbank import CONTEXT_SAMPLES
from training.interpreter import Model

SAMPLE_RATE_HZ = 16000
FRAME_SAMPLES = 640
STREAM_BLOCK_SAMPLES = 1280
UTTERANCE_MULTIPLE_SAMPLES = 8000
_NOISE_SECONDS = 600
_ROWS = 25
# How both streaming recognisers are fed; the lag of their spikes is measured.
STREAM_FRAMING: dict[str, int] = {
    "block_samples": STREAM_BLOCK_SAMPLES,
    "context_samples": CONTEXT_SAMPLES,
    "frame_samples": 640,
    "tail_samples": 5120,
    "delay_samples": 0,
}

# Samples [N, T], T as the model wants it, to log probabilities [N, frames, tokens].
Recogniser = Callable[[np.ndarray], np.ndarray]


def streaming(features: Model, encoder: Model) -> Recogniser:
    """A recogniser that is called block by block, as in a session."""

    def recognise(pcm: np.ndarray) -> np.ndarray:
        padded = np.pad(pcm, ((0, 0), (CONTEXT_SAMPLES, 0)))
        states = encoder.initial_states(len(pcm))
        frames = []
        for start in range(0, pcm.shape[1], STREAM_BLOCK_SAMPLES):
            block = padded[:, start : start + CONTEXT_SAMPLES + STREAM_BLOCK_SAMPLES]
            inputs = features.call(samples=block)[0]
            outputs, states = encoder.call(states, features=inputs["features"])
            frames.append(outputs["log_probs"])
        return np.concatenate(frames, axis=1)

    return recognise


def whole_utterance(features: Model, encoder: Model) -> Recogniser:
    """A recogniser that is called once per utterance."""

    def recognise(pcm: np.ndarray) -> np.ndarray:
        padded = np.pad(pcm, ((0, 0), (CONTEXT_SAMPLES, 0)))
        inputs = features.call(samples=padded)[0]
        return encoder.call(features=inputs["features"])[0]["log_probs"]

    return recognise


def _run(recognise: Recogniser, utterances: list[Utterance], multiple: int) -> list[np.ndarray]:
    """Log probabilities of each utterance, rows of about equal length together."""
    order = np.argsort([len(utterance.pcm) for utterance in utterances], kind="stable")
    results: dict[int, np.ndarray] = {}
    for start in range(0, len(order), _ROWS):
        rows = order[start : start + _ROWS].tolist()
        longest = max(len(utterances[row].pcm) for row in rows)
        pcm = np.zeros((len(rows), -(-longest // multiple) * multiple), np.float32)
        for place, row in enumerate(rows):
            pcm[place, : len(utterances[row].pcm)] = utterances[row].pcm
        results |= dict(zip(rows, recognise(pcm), strict=True))
    return [results[row] for row in range(len(utterances))]


def _errors(recognise: Recogniser, utterances: list[Utterance], multiple: int) -> tuple[float, float, list[np.ndarray]]:
    scores = _run(recognise, utterances, multiple)
    references = [utterance.words for utterance in utterances]
    free = error_rate(references, [words_of(greedy(score)) for score in scores])
    best = error_rate(references, [words_of(bound(score)) for score in scores])
    return free, best, scores


def _lag_samples(utterances: list[Utterance], scores: list[np.ndarray]) -> int:
    """How far the end of the last token's last frame lies behind the end of the speech, on average."""
    lags = []
    for utterance, score in zip(utterances, scores, strict=True):
        tokens = greedy(score)
        if words_of(tokens) == utterance.words:
            lags.append((tokens[-1].last_frame + 1) * FRAME_SAMPLES - utterance.end)
    return round(float(np.mean(lags))) if lags else 0


def _cpu_ms_per_second(recognise: Recogniser) -> float:
    """CPU time for a second of audio, batch 1, in a recording of 8 s."""
    pcm = 0.05 * np.random.default_rng(1).standard_normal((1, 8 * SAMPLE_RATE_HZ)).astype(np.float32)
    recognise(pcm)
    times = []
    for _ in range(5):
        start = time.process_time()
        recognise(pcm)
        times.append(time.process_time() - start)
    return 1000.0 * float(np.median(times)) / 8.0


def evaluate(recognise: Recogniser, multiple: int, cache: Path, shared: Path) -> dict[str, float]:
    """All figures of one recogniser.

    Args:
        recognise: From `streaming` or `whole_utterance`.
        multiple: What the number of samples must be a multiple of.
        cache: Where the synthesis is kept.
        shared: The data folder.

    Returns:
        Word error rates in percent, with the lexicon's beam unless called greedy; words per minute in noise alone.
    """
    figures: dict[str, float] = {}
    for name, utterances in asr_sets.all_sets(cache, shared).items():
        free, best, scores = _errors(recognise, utterances, multiple)
        figures |= {f"{name}_wer": round(best, 1), f"{name}_wer_greedy": round(free, 1)}
        if name == "person":
            figures["delay_samples"] = _lag_samples(utterances, scores)
    silent = _run(recognise, asr_sets.only_noise(_NOISE_SECONDS), multiple)
    words = sum(len(words_of(bound(score))) for score in silent)
    figures["false_words_per_minute_of_noise"] = round(words / (_NOISE_SECONDS / 60), 2)
    figures["cpu_ms_per_second"] = round(_cpu_ms_per_second(recognise), 2)
    return figures
