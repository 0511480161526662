"""Who is waited for when a round has nothing to give yet: readers that stand in for those of partitions."""

from collections.abc import Callable

import pytest

from transforms import kafka_reader
from transforms.kafka_config import KafkaConfig
from transforms.kafka_reader import wait_for_records
from transforms.stream_records import KafkaPartition

CONFIG = KafkaConfig(max_round_records=7)
OTHERS = [KafkaPartition("audio", 1), KafkaPartition("audio", 2)]


class Reader:
    """Has records when it is looked at for the `ready_at`-th time."""

    def __init__(self, name: str, looks: list[tuple[str, int, int]], ready_at: int) -> None:
        self._name = name
        self._looks = looks
        self._left = ready_at

    def look_ahead(self, timeout_ms: int, max_records: int) -> bool:
        self._looks.append((self._name, timeout_ms, max_records))
        self._left -= 1
        return self._left == 0


@pytest.fixture
def looks() -> list[tuple[str, int, int]]:
    return []


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch, looks: list[tuple[str, int, int]]) -> Callable[..., dict[object, Reader]]:
    """Puts readers that are not in use into the place of this process's."""

    def put(*ready_at: int) -> dict[object, Reader]:
        readers = {(CONFIG, OTHERS[n]): Reader(f"other {n}", looks, at) for n, at in enumerate(ready_at)}
        monkeypatch.setattr(kafka_reader, "_idle_readers", readers)
        return readers

    return put


def test_a_partition_alone_is_waited_for_in_one_go(
    idle: Callable[..., dict[object, Reader]], looks: list[tuple[str, int, int]]
) -> None:
    idle(1)
    wait_for_records(CONFIG, Reader("own", looks, 1), [], 3600.0)
    ((name, timeout_ms, most),) = looks
    assert (name, most) == ("own", 7)
    assert 3_500_000 < timeout_ms <= 3_600_000


def test_partitions_of_one_bundle_are_looked_at_in_turn_until_one_has_something(
    idle: Callable[..., dict[object, Reader]], looks: list[tuple[str, int, int]]
) -> None:
    readers = idle(9, 2)
    before = dict(readers)
    wait_for_records(CONFIG, Reader("own", looks, 9), OTHERS, 3600.0)
    assert [name for name, _, _ in looks] == ["own", "other 0", "other 1"] * 2
    assert {timeout_ms for _, timeout_ms, _ in looks} == {kafka_reader._GLANCE_MS}
    assert readers == before


def test_a_reader_that_is_in_use_is_left_to_whom_it_is_lent(
    idle: Callable[..., dict[object, Reader]], looks: list[tuple[str, int, int]]
) -> None:
    idle(9)
    wait_for_records(CONFIG, Reader("own", looks, 2), OTHERS, 3600.0)
    assert [name for name, _, _ in looks] == ["own", "other 0", "own"]


def test_after_the_time_nobody_is_waited_for(
    idle: Callable[..., dict[object, Reader]], looks: list[tuple[str, int, int]]
) -> None:
    readers = idle(9, 9)
    wait_for_records(CONFIG, Reader("own", looks, 9), OTHERS, 0.0)
    assert looks == []
    assert len(readers) == 2
