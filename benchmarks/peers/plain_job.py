"""The limit: a kafka-python poll loop with live states in a dict. What it has heard is lost when it ends."""

from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from benchmarks.peers.no_model import load_engine
from benchmarks.peers.plain_session import hear, job_options


def main() -> None:
    """Runs until it is ended."""
    options, _ = job_options()
    engine = load_engine(options.model)
    consumer = KafkaConsumer(bootstrap_servers=options.servers, enable_auto_commit=False, metrics_enabled=False)
    consumer.assign([TopicPartition(options.audio, 0)])
    consumer.seek_to_beginning()
    producer = KafkaProducer(bootstrap_servers=options.servers, linger_ms=1, metrics_enabled=False)
    # Any: whatever the engine has.
    states: dict[bytes, Any] = {}
    while True:
        for records in consumer.poll(timeout_ms=100, max_records=500).values():
            for record in records:
                state, results = hear(engine, record.key.decode(), states.get(record.key), record.headers, record.value)
                if state is None:
                    states.pop(record.key, None)
                else:
                    states[record.key] = state
                for value in results:
                    producer.send(options.results, value, key=record.key)


if __name__ == "__main__":
    main()
