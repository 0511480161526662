"""What a session must say, and with which of its chunks it can first be said: the measure of right and of late."""

from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers.no_model import NoModel
from model_runtime import Event, Final, Partial, SpeechEngine
from model_runtime.decode import decode_pcm, encode_linear16
from transforms.milliseconds import samples_to_ms

RATE_HZ = 16_000
CHUNK_SAMPLES = 1_600
CHUNK_MS = 1000 * CHUNK_SAMPLES // RATE_HZ

Name = tuple[str, int, int]
"""A result within its session: type, utterance, revision."""


class Expected(NamedTuple):
    """What a result must hold, and the number of the chunk that brings it."""

    text: str
    start_ms: int
    end_ms: int
    chunk: int


class Script(NamedTuple):
    """A session's audio (float32 [n], 16 kHz) as a candidate decodes it, and all that is to be said of it."""

    audio: np.ndarray
    results: dict[Name, Expected]

    def chunks(self) -> int:
        """Gives the number of its records."""
        return -(-len(self.audio) // CHUNK_SAMPLES)


def scripts(engine: SpeechEngine | NoModel, clips: list[np.ndarray], count: int, seconds: float) -> list[Script]:
    """Gives `count` different sessions of about that length; each ends in the middle of an utterance, if it has one."""
    chosen = []
    for number in range(count):
        order = [clips[(number + i) % len(clips)] for i in range(len(clips))]
        while sum(map(len, order)) < seconds * RATE_HZ:
            order += order
        audio = _as_sent(np.concatenate(order)[: round(seconds * RATE_HZ)])
        finals = [event for event in engine.run([audio])[0] if isinstance(event, Final)]
        middle = (finals[-1].start_samples + finals[-1].end_samples) // 2 if finals else 0
        chosen.append(script(engine, audio[:middle] if middle > len(audio) // 2 else audio))
    return chosen


def script(engine: SpeechEngine | NoModel, audio: np.ndarray) -> Script:
    """Gives what the engine says of audio chunk by chunk.

    Raises:
        ValueError: as a whole it says something else of it.
    """
    # Any: whatever state the engine has.
    state: Any = engine.start(RATE_HZ)
    heard: list[tuple[Event, int]] = []
    last = max(0, len(audio) - 1) // CHUNK_SAMPLES
    for chunk in range(last + 1):
        state, events = engine.step(state, audio[chunk * CHUNK_SAMPLES : (chunk + 1) * CHUNK_SAMPLES])
        heard += [(event, chunk) for event in events]
    heard += [(event, last) for event in engine.finish(state)[1]]
    if [event for event, _ in heard if isinstance(event, Final)] != [
        event for event in engine.run([audio])[0] if isinstance(event, Final)
    ]:
        raise ValueError("the engine says something else of a whole recording than of its chunks")
    results = {}
    for event, chunk in heard:
        if isinstance(event, Partial | Final):
            name = type(event).__name__.lower(), event.utterance, event.revision
            start_ms, end_ms = (samples_to_ms(n, RATE_HZ) for n in (event.start_samples, event.end_samples))
            results[name] = Expected(event.text, start_ms, end_ms, chunk)
    return Script(audio, results)


def _as_sent(audio: np.ndarray) -> np.ndarray:
    return decode_pcm(encode_linear16(audio), "LINEAR16", 1, RATE_HZ)
