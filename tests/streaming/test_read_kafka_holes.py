"""What takes an offset and is no record: markers of transactions, and what compaction has left out."""

import time
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import pytest
from kafka import KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.consumer.fetcher import ConsumerRecord

from transforms.endless_range import NOTHING_LOST
from transforms.kafka_config import KafkaConfig

pytestmark = pytest.mark.kafka

FIRST_MS = 1_600_000_000_000


def transact(config: KafkaConfig, transactions: Sequence[tuple[int, bool]]) -> None:
    """Writes transactions of so many records each, committed or aborted."""
    producer = KafkaProducer(bootstrap_servers=config.bootstrap_servers, transactional_id=config.topics.audio)
    producer.init_transactions()
    for count, commit in transactions:
        producer.begin_transaction()
        for _ in range(count):
            producer.send(config.topics.audio, b"x", key=b"s", timestamp_ms=FIRST_MS)
        # What has not been sent when a transaction is aborted never is.
        producer.flush()
        producer.commit_transaction() if commit else producer.abort_transaction()
    producer.close()


def test_committed_transactions_are_read_aborted_ones_and_markers_are_passed_over(
    rounds: Callable[..., Any],
) -> None:
    source = rounds(max_round_records=2)
    transact(source.config, [(3, True), (3, False), (1, True)])
    source.send(2)
    # A transaction's marker takes an offset as well: 3, 7 and 9.
    records = source.read_until(lambda got: len(got) >= 6)
    assert [record.offset for record in records] == [0, 1, 2, 8, 10, 11]
    assert {record.lost_before for record in records} == {NOTHING_LOST}


@pytest.mark.parametrize("commit", [True, False])
def test_a_partition_that_ends_with_a_marker_has_been_read_to_its_end(rounds: Callable[..., Any], commit: bool) -> None:
    source = rounds()
    transact(source.config, [(2, commit)])
    before_ms = int(time.time() * 1000)
    records = source.read()
    source.read_until(lambda got: len(records + got) == 2 * commit and source.watermark_ms() > before_ms)


def test_what_is_written_behind_an_open_transaction_waits_for_its_end(rounds: Callable[..., Any]) -> None:
    source = rounds()
    producer = KafkaProducer(bootstrap_servers=source.config.bootstrap_servers, transactional_id=uuid4().hex)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(source.config.topics.audio, b"x", key=b"s", timestamp_ms=FIRST_MS).get(60)
    source.send(1)
    before_ms = int(time.time() * 1000)
    # So long that an idle partition would have followed the clock.
    held = source.read_until(lambda got: time.time() * 1000 > before_ms + 1_000)
    producer.commit_transaction()
    producer.close()
    assert [record.offset for record in held + source.read_until(lambda got: len(held + got) == 2)] == [0, 1]
    assert held == []


def test_holes_of_compaction_are_passed_over_and_are_no_loss(
    rounds: Callable[..., Any], admin: KafkaAdminClient, read_topic: Callable[[str], list[ConsumerRecord]]
) -> None:
    source = rounds()
    topic = source.config.topics.audio
    compact = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "100"}
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {**compact, "max.compaction.lag.ms": "100"})])
    producer = KafkaProducer(bootstrap_servers=source.config.bootstrap_servers, acks="all")
    newest: dict[bytes, int] = {}
    end, written = time.monotonic() + 150, 0
    # Only what has been followed by a new segment is compacted, so something is written until that has happened.
    while not newest or read_topic(topic)[0].offset == 0:
        assert time.monotonic() < end, "the broker does not compact"
        key = b"%d" % (written % 3)
        newest[key] = producer.send(topic, b"x", key=key).get(60).offset
        written += 1
    producer.close()
    records = source.read_until(lambda got: {r.key: r.offset for r in got} == newest)
    offsets = [record.offset for record in records]
    assert offsets == sorted(set(offsets))
    assert len(offsets) < written
    assert {record.lost_before for record in records} == {NOTHING_LOST}
