"""TranscribeUtterances: the words of utterances that have been heard to their end, apart from their sessions."""

from collections.abc import Iterator

import apache_beam as beam
from apache_beam.coders import BytesCoder
from apache_beam.transforms.userstate import ReadModifyWriteRuntimeState, ReadModifyWriteStateSpec
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.shared import Shared
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from model_runtime.devices import RouteConfig
from transforms.engine_handle import _EngineFn
from transforms.result import Result, event_to_result
from transforms.stream_records import SpokenUtterance
from transforms.timing import clock_ms

# Rows of a batch, at most; a bundle of a live job holds few.
_MOST_UTTERANCES = 8


class TranscribeUtterances(beam.PTransform):
    """Takes (session, SpokenUtterance); gives the Result of each final, and what is to be said after it.

    It is a stage of its own: a long transcription holds up no session's next chunk. The finals are those that the
    session's own engine would have said, in their order within each session.
    """

    def __init__(self, recipe: str, route: RouteConfig, shared: Shared) -> None:
        """Takes the handle of the engine that hears the sessions, which is used here as well."""
        super().__init__()
        self._fn = _TranscribeFn(recipe, route, defer=True, shared=shared)

    def expand(self, utterances: beam.PCollection) -> beam.PCollection:
        return utterances | "Transcribe" >> beam.ParDo(self._fn)


class _TranscribeFn(_EngineFn):
    # Never read: because of it, runners make this a stage of its own and take a session's elements one after another.
    ORDER = ReadModifyWriteStateSpec("order", BytesCoder())

    def start_bundle(self) -> None:
        self._waiting: list[tuple[SpokenUtterance, Timestamp]] = []

    def process(
        self,
        element: tuple[str, SpokenUtterance],
        time: Timestamp = beam.DoFn.TimestampParam,
        order: ReadModifyWriteRuntimeState = beam.DoFn.StateParam(ORDER),  # noqa: B008
    ) -> Iterator[Result]:
        self._waiting.append((element[1], time))
        if len(self._waiting) >= _MOST_UTTERANCES:
            yield from (result for result, _ in self._transcribe())

    def finish_bundle(self) -> Iterator[WindowedValue]:
        for result, time in self._transcribe():
            yield WindowedValue(result, time, (GlobalWindow(),))

    def _transcribe(self) -> Iterator[tuple[Result, Timestamp]]:
        waiting, self._waiting = self._waiting, []
        began_ms = clock_ms()
        tasks = [(spoken.utterance, spoken.pcm) for spoken, _ in waiting if spoken.utterance is not None]
        finals = iter(self.engine.transcribe(tasks) if tasks else [])
        done_ms = clock_ms()
        for spoken, time in waiting:
            if spoken.utterance is not None:
                result = event_to_result(next(finals), spoken.heard, self.engine.made_by())
                if result is not None:
                    timing = result.timing and result.timing.queued(began_ms).computed(done_ms)
                    yield result._replace(timing=timing), time
            for later in spoken.then:
                yield later, time
