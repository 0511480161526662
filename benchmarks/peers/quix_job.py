"""Quix Streams: StreamingDataFrame.apply(stateful=True); the state is the engine's frozen bytes, for its stores."""

from typing import Any

from quixstreams import Application, State

from benchmarks.peers.no_model import load_engine
from benchmarks.peers.plain_session import CHECKPOINT_S, hear, job_options


def main() -> None:
    """Runs until it is ended; with --durable every change of state is kept in a changelog topic, as is its default."""
    options, _ = job_options()
    engine = load_engine(options.model)
    application = Application(
        options.servers,
        consumer_group=options.audio,
        auto_offset_reset="earliest",
        commit_interval=CHECKPOINT_S,
        use_changelog_topics=options.durable,
        state_dir=options.folder,
        producer_extra_config={"linger.ms": 1},
    )

    # Any: Quix has no types for these.
    def advance(value: bytes, key: str, timestamp: int, headers: Any, state: State) -> list[bytes]:
        frozen = state.get_bytes("engine")
        session, results = hear(engine, key, engine.thaw(frozen) if frozen else None, headers, value)
        if session is None:
            state.delete("engine")
        else:
            state.set_bytes("engine", engine.freeze(session))
        return results

    audio = application.topic(options.audio, key_deserializer="str", value_deserializer="bytes")
    results = application.topic(options.results, key_serializer="str", value_serializer="bytes")
    frame = application.dataframe(audio).apply(advance, stateful=True, expand=True, metadata=True)
    frame.to_topic(results)
    application.run()


if __name__ == "__main__":
    main()
