"""DecodeChunks: Kafka records into the chunks of sessions, after the wire (docs/streaming.md)."""

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindow, TimestampedValue
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from model_runtime.errors import AudioError
from service.wire import AudioDefaults, decode_headers, decode_session
from transforms.dead_letter import DEAD_LETTERS, DeadLetter
from transforms.stream_records import Chunk, KafkaRecord, refused_record
from transforms.waiting_records import WAITING

# A group of so many bytes is handed on before its bundle ends.
_GROUP_BYTES = 1 << 20

_Place: TypeAlias = tuple[str, str, int]

CHUNKS = "chunks"
"""The output tag of (session, [Chunk, ...])."""


class DecodeChunks(beam.PTransform):
    """Gives (session, [Chunk, ...]) under CHUNKS, and what is no chunk under DEAD_LETTERS.

    A session's chunks of one bundle, which is a round of reading, come together, in their order: a read of its state, a
    call of the models and a write of its state then do for all of them.
    """

    def __init__(self, defaults: AudioDefaults) -> None:
        super().__init__()
        self._defaults = defaults

    def expand(self, records: beam.PCollection) -> Any:
        decode = beam.ParDo(_DecodeFn(self._defaults)).with_output_types(
            tuple[str, list[Chunk]], **{DEAD_LETTERS: DeadLetter}
        )
        return records | "Decode" >> decode.with_outputs(DEAD_LETTERS, main=CHUNKS)


def decode_record(record: KafkaRecord, defaults: AudioDefaults) -> Chunk:
    """Gives the chunk that a record holds; its audio is not looked at yet.

    Raises:
        AudioError: the key is no session's id, or a header cannot be read.
    """
    session = decode_session(record.key)
    headers = decode_headers(record.headers, defaults)
    return Chunk(
        session=session,
        sequence=headers.sequence,
        encoding=headers.encoding,
        sample_rate_hz=headers.sample_rate_hz,
        channels=headers.channels,
        end_of_stream=headers.end_of_stream,
        payload=record.value,
        event_ms=record.event_ms,
        stream_ms=record.stream_ms,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        headers=record.headers,
        substituted=record.substituted,
        read_ms=record.read_ms,
        behind=record.behind,
        lost_before=record.lost_before,
    )


class _DecodeFn(beam.DoFn):
    def __init__(self, defaults: AudioDefaults) -> None:
        super().__init__()
        self._defaults = defaults
        self._refused = Metrics.counter("speech.wire", "records_refused")

    def start_bundle(self) -> None:
        self._sizes: dict[_Place, int] = {}
        self._groups: dict[_Place, list[Chunk]] = {}

    def process(
        self, record: KafkaRecord
    ) -> Iterator[TimestampedValue | TaggedOutput[Literal["dead_letters"], DeadLetter]]:
        try:
            chunk = decode_record(record, self._defaults)
        except AudioError as error:
            self._refused.inc()
            WAITING.heard(record.topic, record.partition, record.offset)
            letter: DeadLetter = refused_record(record, "wire", error)
            yield TaggedOutput(DEAD_LETTERS, letter)
            return
        place = chunk.session, chunk.topic, chunk.partition
        self._groups.setdefault(place, []).append(chunk)
        self._sizes[place] = self._sizes.get(place, 0) + len(chunk.payload or b"")
        if self._sizes[place] >= _GROUP_BYTES:
            del self._sizes[place]
            chunks = self._groups.pop(place)
            yield TimestampedValue((chunk.session, chunks), _time_of(chunks))

    def finish_bundle(self) -> Iterator[WindowedValue]:
        for (session, _, _), chunks in self._groups.items():
            yield WindowedValue((session, chunks), _time_of(chunks), (GlobalWindow(),))
        self._groups = {}


def _time_of(chunks: list[Chunk]) -> Timestamp:
    """Gives the time of a group: that of its first chunk, so that none of its session's timers fires before it."""
    return Timestamp(micros=chunks[0].stream_ms * 1000)
