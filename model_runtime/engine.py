"""The speech engine: audio in, events out, every bit of a session's memory in a state that the caller holds."""

from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from msgspec.structs import replace

from model_runtime.assembly import Assembly, assemble
from model_runtime.audio import Audio, check_samples
from model_runtime.calls import CallTally, Steps, drive, drive_in_lock_step
from model_runtime.decode import encode_linear16
from model_runtime.devices import RouteConfig
from model_runtime.endpoint import EndpointRules
from model_runtime.errors import ConfigError, SpeechError, check_within
from model_runtime.fixed_batch import FixedBatches
from model_runtime.frozen_state import StateCodec
from model_runtime.recipe import Recipe, load_recipe
from model_runtime.records import PCM, Enhanced, Event, Final, MadeBy, Partial, Utterance
from model_runtime.resample import Resampler
from model_runtime.session_settings import SessionSettings
from model_runtime.session_state import SessionState
from model_runtime.session_time import SessionTime
from model_runtime.stream import Stream, whole_clip
from model_runtime.utterance_recognizer import SoFar, UtteranceRecognizer

# A resampler holds no stream, so all sessions share one per pair of rates instead of making it for every chunk.
_resampler = lru_cache(maxsize=64)(Resampler)

Owed = TypeVar("Owed", Partial, Final)


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
        self._longest_utterance_ms = assembly.longest_utterance_ms
        self._codec = StateCodec(SessionState, assembly.fingerprint)
        self._fixed_batches = FixedBatches({card.name: list(graphs.values()) for _, card, graphs in assembly.models})

    @classmethod
    def load(
        cls, recipe: str | Path | Recipe, route: RouteConfig | None = None, defer: bool = False, agree: bool = True
    ) -> "SpeechEngine":
        """Loads and warms up every model of a recipe.

        Args:
            recipe: the name of a packaged recipe, the path of a YAML file, or a recipe.
            route: devices in order of preference, and what to do when one cannot be had; the CPU by default.
            defer: a recogniser that runs when an utterance has ended, behind a vad, is left to `transcribe`: events
                then hold UtteranceAudio on the way and an Utterance in place of each Final.
            agree: False leaves out the partials of such a recogniser (`asr.agreement_interval_ms`), which cost a
                decoding each; the Finals are the same.

        Raises:
            ConfigError, ModelError, DeviceError: with path and reason.
        """
        loaded = load_recipe(recipe)
        engine = cls(loaded, assemble(loaded, route or RouteConfig(), defer, agree))
        engine._warm_up()
        return engine

    def start(
        self,
        sample_rate_hz: int | None = None,
        settings: SessionSettings = SessionSettings(),  # noqa: B008  (frozen)
    ) -> SessionState:
        """Gives the state of a new session whose audio has this rate (the models' own by default).

        Args:
            settings: what this session wants otherwise than the recipe has it; its state remembers that.

        Raises:
            AudioError: the rate is out of bounds.
            ConfigError: a setting is out of bounds.
        """
        rules = interval = None
        if settings != SessionSettings():
            rules, interval = self._rules(settings), self._interval(settings)
        rate_hz = sample_rate_hz or self.sample_rate_hz
        resampled = rate_hz != self.sample_rate_hz
        return SessionState(
            rate_hz,
            resampler=self._to_models(rate_hz).initial_state() if resampled else None,
            enhanced_resampler=self._from_models(rate_hz).initial_state() if resampled and self._denoiser else None,
            denoise=self._denoiser.start() if self._denoiser else None,
            vad=self._vad.start(rules, interval) if self._vad else None,
            continuous=self._continuous.start(rules, interval) if self._continuous else None,
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
        events: list[list[Event]] = [[] for _ in clips]
        streams = [whole_clip(clip, self.sample_rate_hz, said.extend) for clip, said in zip(clips, events, strict=True)]
        self.run_streams(streams, batch_size, tally)
        return events

    def run_streams(self, streams: Sequence[Stream], batch_size: int = 16, tally: CallTally | None = None) -> None:
        """Hears recordings of any length side by side, in batches as `run`, and holds no more than a block of each.

        Args:
            streams: up to three times `batch_size` of them are read at a time.
            batch_size, tally: as for `run`.
        """
        if tally is not None:
            self._fixed_batches.note(batch_size, tally)
        drive_in_lock_step([partial(self._whole, stream) for stream in streams], batch_size, tally)

    def transcribe(self, utterances: Sequence[tuple[Utterance, bytes]], batch_size: int = 16) -> list[Final]:
        """Gives the Finals that a deferring engine owes, in order.

        Args:
            utterances: of any sessions, each with the audio of all its UtteranceAudio, joined.
            batch_size: rows in one call of a model, at most.

        Raises:
            SpeechError: this recipe's recogniser does not wait for the end of utterances.
        """
        recognizer = self._whole_recognizer()
        steps = [partial(recognizer.transcribe, utterance, pcm) for utterance, pcm in utterances]
        finals = drive_in_lock_step(steps, batch_size)
        return [self._owed(final, utterance) for final, (utterance, _) in zip(finals, utterances, strict=True)]

    def transcribe_so_far(self, utterance: Utterance, pcm: bytes, before: str | None = None) -> SoFar:
        """Gives a Partial that a deferring engine owes, the same whatever others have been asked for.

        Args:
            utterance: one that is not over.
            pcm: the audio of its UtteranceAudio until then, joined.
            before: `decoded` of the revision before this one, which spares a decoding.

        Raises:
            SpeechError: this recipe's recogniser does not wait for the end of utterances.
        """
        so_far = drive(self._whole_recognizer().transcribe_so_far(utterance, pcm, before))
        return so_far._replace(partial=self._owed(so_far.partial, utterance))

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
        for stage, card, graphs_by_role in self._models:
            graphs = graphs_by_role.values()
            names.append(f"{card.name}:{card.version}:{'+'.join(dict.fromkeys(graph.variant for graph in graphs))}")
            places = [graph.device + (f"({graph.reason})" if graph.reason else "") for graph in graphs]
            devices.append((stage, "/".join(dict.fromkeys(places))))
        distinct = {device for _, device in devices}
        same = len(distinct) == 1 and "(" not in devices[0][1]
        device = devices[0][1] if same else ",".join(f"{stage}={device}" for stage, device in devices)
        return MadeBy("+".join(names), device)

    def _whole_recognizer(self) -> UtteranceRecognizer:
        if not isinstance(self._recognizer, UtteranceRecognizer):
            raise SpeechError(f"recipe {self.recipe.name} has no recogniser that hears utterances whole")
        return self._recognizer

    def _owed(self, event: Owed, utterance: Utterance) -> Owed:
        """Moves what was said of an utterance into its session's samples."""
        time = SessionTime(self.sample_rate_hz, utterance.sample_rate_hz)
        return event._replace(
            start_samples=time.position(event.start_samples), end_samples=time.position(event.end_samples)
        )

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

    def _rules(self, settings: SessionSettings) -> EndpointRules:
        try:
            endpoint = settings.endpoint(self.recipe.endpoint)
            # A recogniser may take less than a recipe may say.
            check_within("max_utterance_ms", endpoint.max_utterance_ms, 1_000, self._longest_utterance_ms)
        except ValueError as error:
            raise ConfigError(str(error)) from error
        return EndpointRules.of(endpoint, self.sample_rate_hz)

    def _interval(self, settings: SessionSettings) -> int | None:
        interval_ms = settings.partial_interval_ms
        return None if interval_ms is None else interval_ms * self.sample_rate_hz // 1000

    def _to_models(self, rate_hz: int) -> Resampler:
        return _resampler(rate_hz, self.sample_rate_hz)

    def _from_models(self, rate_hz: int) -> Resampler:
        return _resampler(self.sample_rate_hz, rate_hz)

    def _whole(self, stream: Stream) -> Steps[None]:
        state = self.start(stream.sample_rate_hz)
        for samples in stream.blocks:
            state, events = yield from self._step(state, check_samples(samples))
            stream.take(events)
        _, tail = yield from self._finish(state)
        stream.take(tail)

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
        if state.enhanced_resampler is not None:
            resampler, clean = self._from_models(state.sample_rate_hz).push(state.enhanced_resampler, clean)
            state = replace(state, enhanced_resampler=resampler)
        return self._give_out(state, clean, events)

    def _flush_enhanced(self, state: SessionState, events: list[Event]) -> SessionState:
        if not self._emit_enhanced or state.enhanced_resampler is None:
            return state
        _, rest = self._from_models(state.sample_rate_hz).flush(state.enhanced_resampler)
        return self._give_out(state, rest[: state.received_samples - state.enhanced_samples], events)

    def _give_out(self, state: SessionState, clean: np.ndarray, events: list[Event]) -> SessionState:
        if not len(clean):
            return state
        events.append(Enhanced(state.enhanced_samples, clean.astype(PCM, copy=False).tobytes()))
        return replace(state, enhanced_samples=state.enhanced_samples + len(clean))

    def _in_session_time(self, state: SessionState, events: list[Event]) -> list[Event]:
        if state.resampler is None:
            return events
        time = SessionTime(self.sample_rate_hz, state.sample_rate_hz)
        return [time.of(event) for event in events]
