"""Figures for the voice detector's .tflite file: wrong frames on people it never heard, time on one thread."""

import time
from pathlib import Path

import numpy as np

from training import noise
from training import vad_network as net
from training.filterbank import CONTEXT_SAMPLES
from training.interpreter import Model
from training.real_speech import load_speech
from training.vad_training import speech_frames

SAMPLE_RATE_HZ = 16000
_PAUSE_SAMPLES = 24000
_SNRS_DB = (20, 10, 5)


def probabilities(model: Model, pcm: np.ndarray) -> np.ndarray:
    """Speech probability per 10 ms, [T // 160], of samples float32 [T], block by block as in a session."""
    length = -(-len(pcm) // net.BLOCK_SAMPLES) * net.BLOCK_SAMPLES
    padded = np.pad(pcm, (CONTEXT_SAMPLES, length - len(pcm)))[None]
    states = model.initial_states(1)
    speech = []
    for start in range(0, length, net.BLOCK_SAMPLES):
        block = padded[:, start : start + CONTEXT_SAMPLES + net.BLOCK_SAMPLES]
        outputs, states = model.call(states, samples=block)
        speech.append(outputs["speech"][0])
    return np.concatenate(speech)[: len(pcm) // 160]


def _session(speech: dict[str, np.ndarray]) -> np.ndarray:
    pause = np.zeros(_PAUSE_SAMPLES, np.float32)
    return np.concatenate([part for pcm in speech.values() for part in (pause, pcm)] + [pause])


def _labels(speech: dict[str, np.ndarray]) -> np.ndarray:
    """Labels of each recording by its own level, so that quiet talkers count."""
    session = np.zeros(len(_session(speech)) // 160, bool)
    position = 0
    for pcm in speech.values():
        position += _PAUSE_SAMPLES
        frames = speech_frames(pcm)
        first = position // 160
        session[first : first + len(frames)] = frames
        position += len(pcm)
    return session


def evaluate(model: Model, shared: Path) -> dict[str, float]:
    """Frame errors in percent at a threshold of a half, false alarms in noise alone, CPU time."""
    speech = load_speech(shared)
    session, labels = _session(speech), _labels(speech)
    rng = np.random.default_rng(77)
    figures = {}
    conditions: dict[str, list[np.ndarray]] = {"clean": [session], "quiet": [session * np.float32(0.02)]}
    makers = (noise.white, noise.pink, noise.hum, noise.clicks)
    for snr_db in _SNRS_DB:
        noises = [noise.at_snr(session, make(rng, len(session)), snr_db) for make in makers]
        conditions[f"{snr_db}db"] = [session + background for background in noises]
    for name, sessions in conditions.items():
        wrong = [np.mean((probabilities(model, pcm) > 0.5) != labels) for pcm in sessions]
        figures[f"frame_error_{name}_percent"] = round(100 * float(np.mean(wrong)), 2)
    alone = [noise.any_noise(rng, 10 * SAMPLE_RATE_HZ) * np.float32(0.03) for _ in range(30)]
    alarms = [np.mean(probabilities(model, pcm) > 0.5) for pcm in alone]
    figures["false_speech_in_noise_percent"] = round(100 * float(np.mean(alarms)), 2)
    start = time.process_time()
    probabilities(model, session)
    elapsed = time.process_time() - start
    figures["cpu_ms_per_second"] = round(1000 * elapsed / (len(session) / SAMPLE_RATE_HZ), 2)
    return figures
