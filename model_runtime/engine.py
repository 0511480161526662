"""The speech engine: audio in, events out, every bit of a session's memory in a state that the caller holds."""

import logging
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace

from model_runtime.assembly import Assembly, assemble
from model_runtime.audio import Audio, check_samples
from model_runtime.calls import CallTally, Steps, drive, drive_in_lock_step
from model_runtime.continuous_listener import ContinuousListenerState
from model_runtime.decode import encode_linear16
from model_runtime.devices import RouteConfig
from model_runtime.errors import SpeechError
from model_runtime.frozen_state import StateCodec
from model_runtime.recipe import Recipe, load_recipe
from model_runtime.records import Enhanced, Event, Final, MadeBy, Partial, SpeechBegin, SpeechEnd, Utterance
from model_runtime.resample import Resampler, ResamplerState
from model_runtime.spectral import DenoiseState
from model_runtime.utterance_recognizer import UtteranceRecognizer
from model_runtime.vad_listener import VadListenerState

_logger = logging.getLogger(__name__)

# A resampler holds no stream, so all sessions share one per pair of rates instead of making it for every chunk.
_resampler = lru_cache(maxsize=64)(Resampler)


class SessionState(msgspec.Struct, frozen=True, array_like=True):
    """All that a session remembers. Never changed: every step gives a new one."""

    sample_rate_hz: int
    received_samples: int = 0
    # Enhanced samples given out so far.
    enhanced_samples: int = 0
    finished: bool = False
    # Only where the session's rate is not that of the models.
    resampler: ResamplerState | None = None
    enhanced_resampler: ResamplerState | None = None
    denoise: DenoiseState | None = None
    vad: VadListenerState | None = None
    continuous: ContinuousListenerState | None = None


class SpeechEngine:
    """Runs one recipe. Read-only after load, and safe to use from many threads.

    Events are a function of a session's samples alone: chunk borders, freezing and thawing, other sessions and the
    clock leave no trace in them.
    """

    def __init__(self, recipe: Recipe, assembly: Assembly) -> None:
        self.recipe = recipe
        self.sample_rate_hz = assembly.sample_rate_hz
        self._models = assembly.models
        self._denoiser = assembly.denoiser
        self._vad = assembly.vad_listener
        self._continuous = assembly.continuous_listener
        self._recognizer = assembly.recognizer
        self._emit_enhanced = recipe.denoise is not None and recipe.denoise.emit
        self._vad_original = recipe.vad is not None and recipe.vad.hears == "original"
        self._asr_original = recipe.asr is not None and recipe.asr.hears == "original"
        self._codec = StateCodec(SessionState, assembly.fingerprint)
        # Models of which _note_fixed has spoken.
        self._noted: set[str] = set()

    @classmethod
    def load(cls, recipe: str | Path | Recipe, route: RouteConfig | None = None, defer: bool = False) -> "SpeechEngine":
        """Loads and warms up every model of a recipe.

        Args:
            recipe: the name of a packaged recipe, the path of a YAML file, or a recipe.
            route: devices in order of preference, and what to do when one cannot be had; the CPU by default.
            defer: a recogniser that runs when an utterance has ended, behind a vad, is left to `transcribe`: events
                then hold UtteranceAudio on the way and an Utterance in place of each Final.

        Raises:
            ConfigError, ModelError, DeviceError: with path and reason.
        """
        loaded = load_recipe(recipe)
        engine = cls(loaded, assemble(loaded, route or RouteConfig(), defer))
        engine._warm_up()
        return engine

    def start(self, sample_rate_hz: int | None = None) -> SessionState:
        """Gives the state of a new session whose audio has this rate (the models' own by default).

        Raises:
            AudioError: the rate is out of bounds.
        """
        rate_hz = sample_rate_hz or self.sample_rate_hz
        resampled = rate_hz != self.sample_rate_hz
        return SessionState(
            rate_hz,
            resampler=self._to_models(rate_hz).initial_state() if resampled else None,
            enhanced_resampler=self._from_models(rate_hz).initial_state() if resampled and self._denoiser else None,
            denoise=self._denoiser.start() if self._denoiser else None,
            vad=self._vad.start() if self._vad else None,
            continuous=self._continuous.start() if self._continuous else None,
        )

    def step(self, state: SessionState, samples: np.ndarray) -> tuple[SessionState, list[Event]]:
        """Takes the next samples of a session, any number of them.

        Args:
            state: what the last step gave; left as it is, so a failed step can be repeated.
            samples: float32 [n] at the session's rate, -1..1.

        Raises:
            AudioError: a sample is not finite or out of bounds; the message gives its index and value.
        """
        return drive(self._step(state, check_samples(samples)))

    def finish(self, state: SessionState) -> tuple[SessionState, list[Event]]:
        """Ends a session: flushes what the models still hold, so that nothing that was said is lost."""
        return drive(self._finish(state))

    def run(
        self, clips: Sequence[Audio | np.ndarray], batch_size: int = 16, tally: CallTally | None = None
    ) -> list[list[Event]]:
        """Gives the events of whole clips, in order; the same events as `step` and `finish`, in real batches.

        Args:
            clips: audio of any rates, or float32 [n] at the models' rate.
            batch_size: rows in one call of a model, at most.
            tally: counts the calls.
        """
        self._note_fixed(batch_size, tally or CallTally())
        sessions = [partial(self._whole, self._clip(clip)) for clip in clips]
        return drive_in_lock_step(sessions, batch_size, tally)

    def transcribe(self, utterances: Sequence[tuple[Utterance, bytes]], batch_size: int = 16) -> list[Final]:
        """Gives the Finals that a deferring engine owes, in order.

        Args:
            utterances: of any sessions, each with the audio of all its UtteranceAudio, joined.
            batch_size: rows in one call of a model, at most.

        Raises:
            SpeechError: this recipe's recogniser does not wait for the end of utterances.
        """
        recognizer = self._recognizer
        if not isinstance(recognizer, UtteranceRecognizer):
            raise SpeechError(f"recipe {self.recipe.name} has no recogniser that hears utterances whole")
        steps = [partial(recognizer.transcribe, utterance, pcm) for utterance, pcm in utterances]
        finals = drive_in_lock_step(steps, batch_size)
        spans = [self._span(final, utt.sample_rate_hz) for final, (utt, _) in zip(finals, utterances, strict=True)]
        return [
            final._replace(start_samples=start, end_samples=end)
            for final, (start, end) in zip(finals, spans, strict=True)
        ]

    def freeze(self, state: SessionState) -> bytes:
        """Gives a session's state as small, versioned, checksummed bytes."""
        return self._codec.freeze(state)

    def thaw(self, blob: bytes) -> SessionState:
        """Gives back a frozen state.

        Raises:
            StateError: the bytes are damaged, or another recipe or model wrote them.
        """
        state: SessionState = self._codec.thaw(blob)
        return state

    @property
    def defers(self) -> bool:
        """Whether Utterances stand in place of Finals."""
        return isinstance(self._recognizer, UtteranceRecognizer) and self._recognizer.defers

    def made_by(self) -> MadeBy:
        """Gives which models and devices make this engine's results now, with the reason of every fall-back."""
        names, devices = [], []
        for stage, card, graphs in self._models:
            names.append(f"{card.name}:{card.version}:{'+'.join(dict.fromkeys(graph.variant for graph in graphs))}")
            places = [graph.device + (f"({graph.reason})" if graph.reason else "") for graph in graphs]
            devices.append((stage, "/".join(dict.fromkeys(places))))
        distinct = {device for _, device in devices}
        same = len(distinct) == 1 and "(" not in devices[0][1]
        device = devices[0][1] if same else ",".join(f"{stage}={device}" for stage, device in devices)
        return MadeBy("+".join(names), device)

    def _warm_up(self) -> None:
        """Runs half a second of silence through every model, so the first session finds memory and caches ready."""
        silence = np.zeros(self.sample_rate_hz // 2, np.float32)
        self.run([silence], batch_size=1)
        if self._recognizer is not None:
            # Behind a vad it hears nothing of silence.
            utterance = drive(self._recognizer.push(self._recognizer.start(0, 0), silence, []))
            end = drive(self._recognizer.finish(utterance, len(silence), 0))
            if isinstance(end, Utterance):
                self.transcribe([(end, encode_linear16(silence))])

    def _note_fixed(self, batch_size: int, tally: CallTally) -> None:
        """Takes note, once in the log and in every tally, of models that cannot have batches of this size."""
        for _, card, graphs in self._models:
            sizes = [graph.batch_sizes[0] for graph in graphs if len(graph.batch_sizes) == 1]
            if sizes and min(sizes) < batch_size:
                tally.fixed[card.name] = min(sizes)
                if card.name not in self._noted:
                    self._noted.add(card.name)
                    _logger.warning(
                        "model %s is fixed to batch size %d and is run with that, not with %d",
                        card.name,
                        min(sizes),
                        batch_size,
                    )

    def _to_models(self, rate_hz: int) -> Resampler:
        return _resampler(rate_hz, self.sample_rate_hz)

    def _from_models(self, rate_hz: int) -> Resampler:
        return _resampler(self.sample_rate_hz, rate_hz)

    def _clip(self, clip: Audio | np.ndarray) -> Audio:
        samples, rate_hz = clip if isinstance(clip, Audio) else (clip, self.sample_rate_hz)
        return Audio(check_samples(samples), rate_hz)

    def _whole(self, clip: Audio) -> Steps[list[Event]]:
        state, events = yield from self._step(self.start(clip.sample_rate_hz), clip.samples)
        _, tail = yield from self._finish(state)
        return events + tail

    def _step(self, state: SessionState, samples: np.ndarray) -> Steps[tuple[SessionState, list[Event]]]:
        if state.finished:
            raise SpeechError(f"the session has ended after {state.received_samples} samples; start a new one")
        events: list[Event] = []
        state = replace(state, received_samples=state.received_samples + len(samples))
        if state.resampler is not None:
            resampler, samples = self._to_models(state.sample_rate_hz).push(state.resampler, samples)
            state = replace(state, resampler=resampler)
        state = yield from self._take(state, samples, events)
        return state, self._in_session_time(state, events)

    def _finish(self, state: SessionState) -> Steps[tuple[SessionState, list[Event]]]:
        if state.finished:
            raise SpeechError(f"the session has ended already, after {state.received_samples} samples")
        events: list[Event] = []
        if state.resampler is not None:
            _, rest = self._to_models(state.sample_rate_hz).flush(state.resampler)
            state = yield from self._take(state, rest, events)
        if self._denoiser and state.denoise is not None:
            denoise, pairs = yield from self._denoiser.finish(state.denoise)
            state = yield from self._listen(replace(state, denoise=denoise), pairs, events)
            state = self._flush_enhanced(state, events)
        if self._vad and state.vad is not None:
            state = replace(state, vad=(yield from self._vad.finish(state.vad, events)))
        if self._continuous and state.continuous is not None:
            state = replace(state, continuous=(yield from self._continuous.finish(state.continuous, events)))
        return replace(state, finished=True), self._in_session_time(state, events)

    def _take(self, state: SessionState, samples: np.ndarray, events: list[Event]) -> Steps[SessionState]:
        """Passes samples at the models' rate through all stages."""
        if self._denoiser is None or state.denoise is None:
            return (yield from self._listen(state, [(samples, samples)], events))
        denoise, pairs = yield from self._denoiser.push(state.denoise, samples)
        return (yield from self._listen(replace(state, denoise=denoise), pairs, events))

    def _listen(
        self, state: SessionState, pairs: list[tuple[np.ndarray, np.ndarray]], events: list[Event]
    ) -> Steps[SessionState]:
        """Gives out enhanced audio, and passes every pair (clean, original) on to whoever listens."""
        for clean, original in pairs:
            if self._emit_enhanced:
                state = self._enhance(state, clean, events)
            if self._vad and state.vad is not None:
                vad_audio = original if self._vad_original else clean
                asr_audio = original if self._asr_original else clean
                vad = yield from self._vad.push(state.vad, vad_audio, asr_audio, events)
                state = replace(state, vad=vad)
            elif self._continuous and state.continuous is not None:
                asr_audio = original if self._asr_original else clean
                continuous = yield from self._continuous.push(state.continuous, asr_audio, events)
                state = replace(state, continuous=continuous)
        return state

    def _enhance(self, state: SessionState, clean: np.ndarray, events: list[Event]) -> SessionState:
        resampler = state.enhanced_resampler
        if resampler is not None:
            resampler, clean = self._from_models(state.sample_rate_hz).push(resampler, clean)
        return self._give_out(replace(state, enhanced_resampler=resampler), clean, events)

    def _flush_enhanced(self, state: SessionState, events: list[Event]) -> SessionState:
        if not self._emit_enhanced or state.enhanced_resampler is None:
            return state
        _, rest = self._from_models(state.sample_rate_hz).flush(state.enhanced_resampler)
        return self._give_out(state, rest[: state.received_samples - state.enhanced_samples], events)

    def _give_out(self, state: SessionState, clean: np.ndarray, events: list[Event]) -> SessionState:
        if not len(clean):
            return state
        events.append(Enhanced(state.enhanced_samples, clean.astype("<f4", copy=False).tobytes()))
        return replace(state, enhanced_samples=state.enhanced_samples + len(clean))

    def _in_session_time(self, state: SessionState, events: list[Event]) -> list[Event]:
        """Turns positions in the models' samples into those of the session's own rate."""
        if state.resampler is None:
            return events
        return [self._converted(event, state.sample_rate_hz) for event in events]

    def _converted(self, event: Event, rate_hz: int) -> Event:
        match event:
            case SpeechBegin():
                return event._replace(start_samples=self._position(event.start_samples, rate_hz))
            case SpeechEnd() | Partial() | Final():
                start, end = self._span(event, rate_hz)
                return event._replace(start_samples=start, end_samples=end)
            case Utterance():
                return event._replace(sample_rate_hz=rate_hz)
        return event

    def _span(self, event: SpeechEnd | Partial | Final, rate_hz: int) -> tuple[int, int]:
        """Gives where an event begins and ends in the session's samples."""
        return self._position(event.start_samples, rate_hz), self._position(event.end_samples, rate_hz)

    def _position(self, position: int, rate_hz: int) -> int:
        """The session's sample at or before a position in the models' samples: exact, so nothing drifts."""
        return position * rate_hz // self.sample_rate_hz
