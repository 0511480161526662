"""NoModel: an engine that hears without a model, so that what is left is the cost of whatever carries the sessions."""

import zlib

import msgspec
import numpy as np

from model_runtime import Event, Final, Partial, RouteConfig, SpeechEngine
from model_runtime.records import MadeBy
from transforms.infer_sessions import InferSessions, _InferSessionsFn

NONE = "none"
"""The name under which NoModel is asked for in place of a recipe."""

VARIANTS = ("dynamic_range", "int8", "float32")
"""The variants with which every candidate loads a recipe: quantised, where a model is there in such a form."""

# About as many results a second of audio as the streaming recipe gives.
_PARTIAL_SAMPLES = 12_800
_FINAL_SAMPLES = 64_000


class CountedSession(msgspec.Struct, frozen=True, array_like=True):
    """What NoModel remembers of a session: how much it has heard, and the CRC-32 of it."""

    sample_rate_hz: int
    received_samples: int = 0
    checksum: int = 0


class NoModel:
    """Gives a partial every 0.8 s and a final every 4 s whose text is the CRC-32 of all samples so far.

    A chunk that is lost, doubled or out of its turn changes every result behind it.
    """

    sample_rate_hz = 16_000
    defers = False

    def __init__(self) -> None:
        self._decoder = msgspec.msgpack.Decoder(CountedSession)

    def start(self, sample_rate_hz: int | None = None, settings: object = None) -> CountedSession:
        """Gives the state of a new session; there is nothing that settings could change."""
        return CountedSession(sample_rate_hz or self.sample_rate_hz)

    def step(self, state: CountedSession, samples: np.ndarray) -> tuple[CountedSession, list[Event]]:
        """Takes float32 [n], in whatever pieces."""
        events: list[Event] = []
        rate_hz, position, checksum = msgspec.structs.astuple(state)
        while len(samples):
            piece = samples[: _PARTIAL_SAMPLES - position % _PARTIAL_SAMPLES]
            samples = samples[len(piece) :]
            position, checksum = position + len(piece), zlib.crc32(piece, checksum)
            if position % _FINAL_SAMPLES == 0:
                events.append(_final(position // _FINAL_SAMPLES - 1, position, checksum))
            elif position % _PARTIAL_SAMPLES == 0:
                utterance, inside = divmod(position, _FINAL_SAMPLES)
                revision = inside // _PARTIAL_SAMPLES - 1
                events.append(Partial(utterance, revision, f"{checksum:08x}", position - inside, position))
        return CountedSession(rate_hz, position, checksum), events

    def finish(self, state: CountedSession) -> tuple[CountedSession, list[Event]]:
        """Ends a session with a final."""
        return state, [_final(state.received_samples // _FINAL_SAMPLES, state.received_samples, state.checksum)]

    def run(self, clips: list[np.ndarray]) -> list[list[Event]]:
        """Gives the events of whole clips."""
        steps = [self.step(self.start(), clip) for clip in clips]
        return [events + self.finish(state)[1] for state, events in steps]

    def freeze(self, state: CountedSession) -> bytes:
        """Gives the state as bytes."""
        return msgspec.msgpack.encode(state)

    def thaw(self, blob: bytes) -> CountedSession:
        """Gives back a frozen state."""
        return self._decoder.decode(blob)

    def made_by(self) -> MadeBy:
        """Gives what results say about models."""
        return MadeBy(NONE, "cpu")


def load_engine(model: str) -> SpeechEngine | NoModel:
    """Gives the engine of a recipe, or NoModel."""
    return NoModel() if model == NONE else SpeechEngine.load(model, RouteConfig(variants=VARIANTS))


def without_model(infer: InferSessions) -> InferSessions:
    """Gives the inference step with NoModel in the engine's place."""
    infer._fn.__class__ = _NoModelFn
    return infer


class _NoModelFn(_InferSessionsFn):
    def load_engine(self) -> NoModel:
        return NoModel()


def _final(utterance: int, end: int, checksum: int) -> Final:
    revision = _FINAL_SAMPLES // _PARTIAL_SAMPLES
    return Final(utterance, revision, f"{checksum:08x}", (), 1.0, utterance * _FINAL_SAMPLES, end)
