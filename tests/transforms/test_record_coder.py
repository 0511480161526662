"""Records between steps come out as they went in, and Beam finds their coder."""

import pickle

import pytest
from apache_beam.coders import registry

from model_runtime.records import Word
from transforms.dead_letter import DeadLetter
from transforms.record_coder import RecordCoder
from transforms.result import Gap, Result
from transforms.stream_records import Chunk, EnhancedChunk, KafkaOutput, KafkaPartition, KafkaRecord

HEADERS = [("sequence", b"1"), ("null", None)]
WORDS, GAPS = [Word("yes", 0, 1, 0.1)], [Gap(0, 1, 2)]
RESULT = Result("s/1/0/2", "ü", 0, 2, "final", "yes", WORDS, 0, 1, 2, "m", "cpu", GAPS, 0, "", 5)
RECORDS = [
    KafkaPartition("t", 3),
    KafkaRecord("t", 3, 2**62, None, b"\x00\xff", HEADERS, -1, True, 2, 3, 4),
    Chunk("s", -1, "LINEAR16", 16_000, 1, False, None, 1, 2, "t", 3, 4, HEADERS),
    EnhancedChunk("s", 0, 16_000, True, b"", 1, 500, 9_600),
    KafkaOutput("t", None, None, [], None),
    DeadLetter("wire", "?", "AudioError", "no key", None, None, "t", 3, 4, HEADERS),
    RESULT,
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_comes_out_as_it_went_in(record: object) -> None:
    coder = registry.get_coder(type(record))
    assert isinstance(coder, RecordCoder)
    decoded = pickle.loads(pickle.dumps(coder)).decode(coder.encode(record))
    assert (type(decoded), decoded) == (type(record), record)
