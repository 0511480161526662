"""TranscribeUtterances: the words of utterances that have been heard, apart from their sessions."""

import zlib
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
from transforms.result import Result
from transforms.stream_records import SpokenUtterance
from transforms.timing import clock_ms
from transforms.transcription import Transcription


class TranscribeUtterances(beam.PTransform):
    """Takes SpokenUtterance; gives the Result of each final and partial, and what is to be said after it.

    It is a stage of its own: a long transcription holds up no session's next chunk. What it says is what the session's
    own engine would have said, in its order within each session; partials are left out where there is no time for them.
    """

    def __init__(self, recipe: str, route: RouteConfig, shared: Shared, places: int) -> None:
        """Takes the handle of the engine that hears the sessions, which is used here as well.

        A session's utterances always come to the same of the `places`. Each runs one bundle at a time: so many are the
        most that transcribe at once, however many utterances wait. Prism runs no more than 8 bundles of all stages.
        """
        super().__init__()
        self._places = places
        self._fn = _TranscribeFn(recipe, route, defer=True, shared=shared)

    def expand(self, utterances: beam.PCollection) -> beam.PCollection:
        placed = utterances | "Place" >> beam.Map(_place, self._places).with_output_types(tuple[str, SpokenUtterance])
        return placed | "Transcribe" >> beam.ParDo(self._fn)


def _place(spoken: SpokenUtterance, places: int) -> tuple[str, SpokenUtterance]:
    return str(zlib.crc32(spoken.heard.session.encode()) % places), spoken


class _TranscribeFn(_EngineFn):
    # Never read: because of it, runners make this a stage of its own and take a place's elements one after another.
    ORDER = ReadModifyWriteStateSpec("order", BytesCoder())

    def setup(self) -> None:
        super().setup()
        self._transcription = Transcription(self.engine)

    def start_bundle(self) -> None:
        self._waiting: list[tuple[SpokenUtterance, Timestamp]] = []

    def process(
        self,
        element: tuple[str, SpokenUtterance],
        time: Timestamp = beam.DoFn.TimestampParam,
        order: ReadModifyWriteRuntimeState = beam.DoFn.StateParam(ORDER),  # noqa: B008
    ) -> Iterator[Result]:
        # What is said leaves a bundle at its end in any case; by then all that came together is known.
        self._waiting.append((element[1], time))
        yield from ()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        waiting, self._waiting = self._waiting, []
        began_ms = clock_ms()
        said = self._transcription.transcribe([spoken for spoken, _ in waiting])
        done_ms = clock_ms()
        for (_, time), results in zip(waiting, said, strict=True):
            for result in results:
                timing = result.timing and result.timing.queued(began_ms).computed(done_ms)
                yield WindowedValue(result._replace(timing=timing), time, (GlobalWindow(),))
