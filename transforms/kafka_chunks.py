"""DecodeChunks: Kafka records into chunks of sessions, after the wire (docs/streaming.md)."""

from collections.abc import Iterator
from typing import Any, Literal

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.pvalue import TaggedOutput

from model_runtime.errors import AudioError
from service.wire import AudioDefaults, decode_headers, decode_session
from transforms.dead_letter import DEAD_LETTERS, DeadLetter
from transforms.stream_records import Chunk, KafkaRecord, refused_record

CHUNKS = "chunks"
"""The output tag of (session, Chunk)."""


class DecodeChunks(beam.PTransform):
    """Gives (session, Chunk) under CHUNKS, and what is no chunk under DEAD_LETTERS."""

    def __init__(self, defaults: AudioDefaults) -> None:
        super().__init__()
        self._defaults = defaults

    def expand(self, records: beam.PCollection) -> Any:
        decode = beam.ParDo(_DecodeFn(self._defaults)).with_output_types(
            tuple[str, Chunk], **{DEAD_LETTERS: DeadLetter}
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
    )


class _DecodeFn(beam.DoFn):
    def __init__(self, defaults: AudioDefaults) -> None:
        super().__init__()
        self._defaults = defaults
        self._refused = Metrics.counter("speech.wire", "records_refused")

    def process(
        self, record: KafkaRecord
    ) -> Iterator[tuple[str, Chunk] | TaggedOutput[Literal["dead_letters"], DeadLetter]]:
        try:
            chunk = decode_record(record, self._defaults)
        except AudioError as error:
            self._refused.inc()
            letter: DeadLetter = refused_record(record, "wire", error)
            yield TaggedOutput(DEAD_LETTERS, letter)
            return
        yield chunk.session, chunk
