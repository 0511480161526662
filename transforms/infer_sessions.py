"""InferSessions: the engine over live sessions, each with its own state in the runner's hands."""

import time
from collections.abc import Iterator
from copy import copy
from typing import Any, Literal, TypeAlias

import apache_beam as beam
from apache_beam.coders import BytesCoder
from apache_beam.metrics import Metrics
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.userstate import (
    BagRuntimeState,
    BagStateSpec,
    ReadModifyWriteRuntimeState,
    ReadModifyWriteStateSpec,
    RuntimeTimer,
    TimerSpec,
    on_timer,
)
from apache_beam.utils.timestamp import Timestamp

from model_runtime.devices import RouteConfig
from model_runtime.engine import SpeechEngine
from transforms.bundle_load import INFERENCE
from transforms.dead_letter import DEAD_LETTERS, DeadLetter
from transforms.engine_handle import _EngineFn
from transforms.overload import OverloadConfig
from transforms.result import ENHANCED, RESULTS, Result
from transforms.session_config import OutputConfig, SessionConfig
from transforms.session_logic import SessionLogic
from transforms.session_turn import COUNTS, Turn, count_turn
from transforms.stream_records import Chunk, EnhancedChunk, SessionPart, SpokenUtterance
from transforms.transcribe_utterances import TranscribeUtterances
from transforms.waiting_records import WAITING
from transforms.window_stats import StatsPart

# Beam reads the types of tagged outputs from annotations, in which a tag must be spelt out.
_Output: TypeAlias = (
    Result
    | TaggedOutput[Literal["enhanced"], EnhancedChunk]  # ENHANCED
    | TaggedOutput[Literal["dead_letters"], DeadLetter]  # DEAD_LETTERS
    | TaggedOutput[Literal["utterances"], SpokenUtterance]  # UTTERANCES
    | TaggedOutput[Literal["heard"], tuple[str, SessionPart]]  # HEARD
    | TaggedOutput[Literal["stats"], StatsPart]  # STATS
)


UTTERANCES = "utterances"
"""The output tag of SpokenUtterance: what has to be transcribed."""
HEARD = "heard"
"""The output tag of (life of a session, SessionPart): what its engine has heard."""
STATS = "stats"
"""The output tag of StatsPart: what was heard, at what cost."""


class InferSessions(beam.PTransform):
    """Takes (session, [Chunk, ...]), keyed by session; gives Result, EnhancedChunk and DeadLetter under their tags.

    UTTERANCES, if any, go to what `transcription` gives.

    Elements carry their stream time as Beam timestamp. What a session says is what the engine says about its samples;
    see transforms/session.py for when it ends.
    """

    def __init__(
        self,
        recipe: str,
        route: RouteConfig,
        session: SessionConfig = SessionConfig(),  # noqa: B008  (frozen)
        output: OutputConfig = OutputConfig(),  # noqa: B008  (frozen)
        defer: bool = False,
        count: bool = False,
        keep_audio: bool = False,
        overload: OverloadConfig = OverloadConfig(),  # noqa: B008  (frozen)
    ) -> None:
        """Takes what a session is run with.

        Args:
            defer: a recogniser that hears utterances whole is not run here: there are UTTERANCES then.
            count: there are STATS.
            keep_audio: there is HEARD.
            overload: at which lag what is left out.
        """
        super().__init__()
        self.defers = defer
        self._fn = _InferSessionsFn(recipe, route, session, output, defer, count, keep_audio, overload)

    def load_engine(self) -> SpeechEngine:
        """Loads the engine in this process, where the workers' threads will find it as long as it is held.

        Raises:
            ConfigError, ModelError, DeviceError: what would else fail in every worker.
        """
        # A copy shares the handle; the step itself must stay without an engine, or it could not be pickled.
        loaded = copy(self._fn)
        loaded.setup()
        return loaded.engine

    def transcription(self, places: int = 1) -> TranscribeUtterances:
        """Gives the step that transcribes this step's UTTERANCES, with the same engine, in so many places at a time."""
        return self._fn.transcription(places)

    def expand(self, chunks: beam.PCollection) -> Any:
        # Any: a DoOutputsTuple; Beam warns of an annotation that is no PCollection.
        infer = beam.ParDo(self._fn)
        return chunks | "Infer" >> infer.with_outputs(ENHANCED, DEAD_LETTERS, UTTERANCES, HEARD, STATS, main=RESULTS)


class _InferSessionsFn(_EngineFn):
    BOOK = ReadModifyWriteStateSpec("book", BytesCoder())
    # Audio of the utterance under way, which only grows: a turn adds to it what it has heard, and reads nothing.
    AUDIO = BagStateSpec("audio", BytesCoder())
    # One timer for all of a session's deadlines, from a gap to the end of its tombstone: the book says which is due.
    DEADLINE = TimerSpec("deadline", TimeDomain.WATERMARK)

    def __init__(
        self,
        recipe: str,
        route: RouteConfig,
        session: SessionConfig,
        output: OutputConfig,
        defer: bool,
        count: bool,
        keep_audio: bool,
        overload: OverloadConfig,
    ) -> None:
        super().__init__(recipe, route, defer)
        self._session = session
        self._output = output
        self._counters = {name: Metrics.counter("speech.sessions", name) for name in COUNTS}
        self._count = count
        self._keep_audio = keep_audio
        self._overload = overload
        self._turn_us = Metrics.distribution("speech.sessions", "turn_us")
        self._lag_ms = Metrics.distribution("speech.sessions", "lag_ms")
        self._records_behind = Metrics.distribution("speech.sessions", "records_behind")

    def transcription(self, places: int) -> TranscribeUtterances:
        return TranscribeUtterances(self._recipe, self._route, self._shared, places)

    def setup(self) -> None:
        super().setup()
        self._logic = SessionLogic(
            self.engine, self._session, self._output, keep_audio=self._keep_audio, overload=self._overload
        )

    def start_bundle(self) -> None:
        INFERENCE.begin(self)

    def finish_bundle(self) -> None:
        INFERENCE.end(self)

    def process(
        self,
        element: tuple[str, list[Chunk]],
        book: ReadModifyWriteRuntimeState = beam.DoFn.StateParam(BOOK),  # noqa: B008
        audio: BagRuntimeState = beam.DoFn.StateParam(AUDIO),  # noqa: B008
        deadline: RuntimeTimer = beam.DoFn.TimerParam(DEADLINE),  # noqa: B008
    ) -> Iterator[_Output]:
        _, chunks = element
        began_ns = time.perf_counter_ns()
        turn = self._logic.advance(book.read(), chunks)
        WAITING.heard(chunks[-1].topic, chunks[-1].partition, chunks[-1].offset)
        yield from self._measure(turn, began_ns)
        yield from self._hand_on(turn, audio)
        yield from self._carry_out(turn, book, deadline)

    @on_timer(DEADLINE)
    def on_deadline(
        self,
        session: str = beam.DoFn.KeyParam,
        fired: Timestamp = beam.DoFn.TimestampParam,
        book: ReadModifyWriteRuntimeState = beam.DoFn.StateParam(BOOK),  # noqa: B008
        audio: BagRuntimeState = beam.DoFn.StateParam(AUDIO),  # noqa: B008
        deadline: RuntimeTimer = beam.DoFn.TimerParam(DEADLINE),  # noqa: B008
    ) -> Iterator[_Output]:
        data = book.read()
        if data is not None:
            began_ns = time.perf_counter_ns()
            turn = self._logic.expire(data, session, fired.micros // 1000)
            yield from self._measure(turn, began_ns)
            yield from self._hand_on(turn, audio)
            yield from self._carry_out(turn, book, deadline)

    def _measure(self, turn: Turn, began_ns: int) -> Iterator[_Output]:
        """Counts what a turn did, and what it cost."""
        turn_us = (time.perf_counter_ns() - began_ns) // 1000
        self._turn_us.update(turn_us)
        if turn.lag is not None:
            self._records_behind.update(turn.lag.records)
            if turn.lag.ms is not None:
                self._lag_ms.update(turn.lag.ms)
        for name, count in turn.counts.items():
            self._counters[name].inc(count)
        if self._count and turn.counts:
            yield TaggedOutput(STATS, count_turn(turn, turn_us))

    def _hand_on(self, turn: Turn, audio: BagRuntimeState) -> Iterator[_Output]:
        """Keeps the audio of an utterance under way, and gives what is to be transcribed."""
        for place, spoken in enumerate(turn.utterances):
            before = b"".join(audio.read()) if turn.continues and not place else b""
            yield TaggedOutput(UTTERANCES, spoken._replace(pcm=before + spoken.pcm))
        if turn.audio_over:
            audio.clear()
        if turn.audio:
            audio.add(turn.audio)

    def _carry_out(self, turn: Turn, book: ReadModifyWriteRuntimeState, deadline: RuntimeTimer) -> Iterator[_Output]:
        """Writes a session's memory, sets the timer that will end or clear it, and gives what is to be said."""
        if turn.book is None:
            book.clear()
            deadline.clear()
        else:
            book.write(turn.book)
            if turn.timer_ms is not None:
                deadline.set(Timestamp(micros=turn.timer_ms * 1000))
        yield from turn.results
        for chunk in turn.enhanced:
            yield TaggedOutput(ENHANCED, chunk)
        for heard in turn.heard:
            yield TaggedOutput(HEARD, (heard.life, SessionPart(None, heard)))
        for letter in turn.dead_letters:
            yield TaggedOutput(DEAD_LETTERS, letter)
