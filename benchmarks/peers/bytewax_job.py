"""Bytewax: KafkaSource, stateful_flat_map keyed by session, KafkaSink; one worker.

The state is the engine's live state: Bytewax keeps it as an object, and where recovery is on it copies and pickles it
at each snapshot. Frozen bytes would cost a thaw and a freeze per chunk.
"""

from datetime import timedelta
from typing import Any

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource, KafkaSourceMessage
from bytewax.dataflow import Dataflow
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.run import cli_main

from benchmarks.peers.no_model import load_engine
from benchmarks.peers.plain_session import CHECKPOINT_S, hear, job_options


def main() -> None:
    """Runs until it is ended; with --durable recovery is on."""
    options, _ = job_options()
    engine = load_engine(options.model)

    # Any: the state is whatever the engine has.
    def advance(state: Any, message: KafkaSourceMessage) -> tuple[Any, list[KafkaSinkMessage]]:
        state, results = hear(engine, message.key.decode(), state, message.headers, message.value)
        return state, [KafkaSinkMessage(message.key, value) for value in results]

    flow = Dataflow("sessions")
    records = op.input("audio", flow, KafkaSource([options.servers], [options.audio]))
    keyed = op.key_on("session", records, lambda message: message.key.decode())
    said = op.stateful_flat_map("hear", keyed, advance)
    sink = KafkaSink([options.servers], options.results, {"linger.ms": "1"})
    op.output("results", op.key_rm("values", said), sink)
    recovery = None
    if options.durable:
        options.folder.mkdir(parents=True, exist_ok=True)
        init_db_dir(options.folder, 1)
        recovery = RecoveryConfig(options.folder)
    cli_main(flow, epoch_interval=timedelta(seconds=CHECKPOINT_S), recovery_config=recovery)


if __name__ == "__main__":
    main()
