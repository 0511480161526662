"""A real broker for the tests of Kafka, one for the whole run, and topics of their own for each test.

Modules of this folder carry the mark xdist_group("kafka"): xdist keeps them on one worker, so there is one broker.
"""

import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from kafka.admin import KafkaAdminClient, NewTopic

from transforms.kafka_config import KafkaConfig, TopicsConfig

ROOT = Path(__file__).resolve().parents[2]


def free_port() -> int:
    """Gives a port that is free, as is the next one, which the broker takes as well."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return int(port)


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """host:port of a broker that runs for these tests alone."""
    port = free_port()
    script = [str(ROOT / "deploy" / "kafka.sh")]
    place = ["--port", str(port), "--data", str(tmp_path_factory.mktemp("broker") / "data"), "--topics", ""]
    started = subprocess.run([*script, "start", *place], capture_output=True, text=True)
    if started.returncode:
        pytest.fail(f"no broker: {started.stderr}")
    yield f"127.0.0.1:{port}"
    subprocess.run([*script, "stop", *place], check=True, capture_output=True)


@pytest.fixture(scope="session")
def admin(servers: str) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=servers)
    yield client
    client.close()


@pytest.fixture(scope="module")
def make_module_config(servers: str, admin: KafkaAdminClient) -> Callable[..., KafkaConfig]:
    """As make_config, for fixtures that a whole module shares."""
    return lambda partitions=1, **fields: new_config(servers, admin, partitions, **fields)


@pytest.fixture
def make_config(servers: str, admin: KafkaAdminClient) -> Callable[..., KafkaConfig]:
    """Gives a configuration with new topics, audio in so many partitions; any field can be set."""
    return lambda partitions=1, **fields: new_config(servers, admin, partitions, **fields)


def new_config(servers: str, admin: KafkaAdminClient, partitions: int, **fields: object) -> KafkaConfig:
    names = [f"{uuid4().hex}.{name}" for name in TopicsConfig.__struct_fields__]
    admin.create_topics([NewTopic(name, partitions if name.endswith("audio") else 1, 1) for name in names])
    settings = {"start": "earliest", "idle_partition_ms": 200, "allowed_disorder_ms": 100, **fields}
    return KafkaConfig(bootstrap_servers=servers, topics=TopicsConfig(*names), **settings)
