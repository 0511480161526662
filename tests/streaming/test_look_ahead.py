"""Looking ahead in a partition, against a real broker: what has been seen is given once, and where it belongs."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from transforms.kafka_reader import PartitionReader

pytestmark = pytest.mark.kafka

LONG_MS = 60_000


@pytest.fixture
def source(rounds: Callable[..., Any]) -> Any:
    """Ten records in a topic."""
    source = rounds()
    source.send(10)
    return source


@pytest.fixture
def reader(source: Any) -> Iterator[PartitionReader]:
    reader = PartitionReader(source.config, source.partition)
    yield reader
    reader.close()


def offsets(reader: PartitionReader, most: int) -> list[int]:
    records = reader.poll(LONG_MS, most)
    for record in records:
        reader.claimed(record.offset)
    return [record.offset for record in records]


def read_on(reader: PartitionReader, count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        found += offsets(reader, 100)
    return found


def test_what_has_been_seen_is_given_once_and_in_pieces(reader: PartitionReader) -> None:
    reader.seek(0)
    assert reader.look_ahead(LONG_MS, 100)
    assert reader.look_ahead(0, 100)
    assert (reader.place(), reader.caught_up()) == (0, False)
    assert offsets(reader, 3) == [0, 1, 2]
    assert read_on(reader, 7) == [3, 4, 5, 6, 7, 8, 9]
    assert (reader.place(), reader.caught_up()) == (10, True)
    assert not reader.look_ahead(1, 100)


def test_who_goes_elsewhere_gets_what_lies_there(reader: PartitionReader) -> None:
    reader.seek(0)
    assert reader.look_ahead(LONG_MS, 100)
    reader.seek(8)
    assert read_on(reader, 2) == [8, 9]


def test_that_records_were_lost_is_found_out_by_who_reads_on(
    source: Any, reader: PartitionReader, admin: KafkaAdminClient
) -> None:
    admin.delete_records({TopicPartition(source.config.topics.audio, 0): 4})
    reader.seek(0)
    assert reader.look_ahead(LONG_MS, 100)
    assert reader.take_lost() == 0
    assert reader.poll(LONG_MS, 100) == []
    assert (reader.take_lost(), reader.lost_before) == (4, 4)
    assert read_on(reader, 6) == [4, 5, 6, 7, 8, 9]
