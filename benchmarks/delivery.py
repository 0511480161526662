"""What a reader who keeps one row per id gets to see of sessions, beside what the engine says about their audio."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from kafka import KafkaConsumer, TopicPartition

from model_runtime import Audio, SpeechEngine
from model_runtime.records import Final
from transforms.result import Heard, event_to_result
from transforms.session_book import incarnation_at

Said: TypeAlias = tuple[Any, ...]
"""What a final says: text, words, start and end."""


class Delivery(NamedTuple):
    """Finals by what became of them.

    Attributes:
        expected: How many there should be.
        lost, doubled, changed: Ids.
        repeated: Copies under one id, which no reader sees.
    """

    expected: int
    lost: list[str]
    doubled: list[str]
    changed: list[str]
    repeated: int

    def is_exact(self) -> bool:
        """Says whether a reader saw each final once, and as it should be."""
        return not (self.lost or self.doubled or self.changed)


def expected_finals(engine: SpeechEngine, session: str, incarnation: int, audio: Audio) -> dict[str, Said]:
    """Gives the finals, by their id, of a session that has said nothing but this."""
    (events,) = engine.run([audio])
    heard = Heard(session, incarnation, audio.sample_rate_hz, 0)
    finals = [event_to_result(event, heard, engine.made_by()) for event in events if isinstance(event, Final)]
    return {
        final.result_id: said({**final._asdict(), "words": [word._asdict() for word in final.words]})
        for final in finals
        if final is not None
    }


def said(result: Mapping[str, Any]) -> Said:
    """Gives what the fields of a result say."""
    words = [tuple(word[name] for name in ("text", "start_ms", "end_ms")) for word in result["words"]]
    return result["text"], tuple(words), result["start_ms"], result["end_ms"]


def compare(expected: Mapping[str, Said], results: Iterable[Mapping[str, Any]]) -> Delivery:
    """Gives what became of the finals that are expected.

    Doubled is a final under an id that nobody expects: what has been said is said again, elsewhere. Changed is one of
    which a copy does not say what is expected.
    """
    seen: dict[str, list[Said]] = {}
    for result in results:
        if result["type"] == "final":
            seen.setdefault(result["result_id"], []).append(said(result))
    return Delivery(
        expected=len(expected),
        lost=[name for name in expected if name not in seen],
        doubled=[name for name in seen if name not in expected],
        changed=[name for name, copies in seen.items() if name in expected and set(copies) != {expected[name]}],
        repeated=sum(len(copies) - 1 for copies in seen.values()),
    )


def chunk_places(servers: str, topic: str) -> dict[str, list[int]]:
    """Gives, for each record of each session in a topic, the incarnation of a session that begins with it."""
    places: dict[str, list[int]] = {}
    with KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(partition) < ends[partition] for partition in partitions):
            for records in consumer.poll(timeout_ms=100).values():
                for record in records:
                    place = incarnation_at(record.partition, record.offset)
                    places.setdefault(record.key.decode(), []).append(place)
    return places
