"""The configuration of the Kafka source and sink."""

from typing import Annotated, Literal

import msgspec


class TopicsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The names of the topics; all must exist before the job starts, unless it waits for the audio."""

    # Read: audio chunks, keyed by session.
    audio: str = "speech.audio"
    # Written: one JSON object per event, keyed by session.
    results: str = "speech.results"
    # Written: clean audio, keyed by session; unless results.enhanced is false.
    enhanced: str = "speech.enhanced"
    # Written: the original records that could not be used, with the reason in headers.
    dead_letters: str = "speech.audio-dlt"
    # Written: figures of the job by windows of event time; only with stats.write.
    stats: str = "speech.stats"


class KafkaConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where Kafka is, where reading begins, and how the source keeps time."""

    # host:port of one or more brokers, separated by commas.
    bootstrap_servers: str = "127.0.0.1:19092"
    topics: TopicsConfig = TopicsConfig()
    # Consumer group under which the offsets read so far are committed, for lag monitors only: the runner's checkpoint
    # says where a job goes on. Empty: nothing is committed.
    group_id: str = ""
    # Where a new job begins in each partition: earliest or latest (only what is sent from now on).
    start: Literal["earliest", "latest"] = "latest"
    # When the audio topic does not exist at the start: fail (exit code 2), or wait for it and read all of it.
    on_missing_topic: Literal["fail", "wait"] = "fail"
    # Every so many ms the audio topic is looked at for partitions that have been added since, which are read from their
    # beginning; at least 100, or 0: never.
    partition_check_ms: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 2_000
    # Where reading goes on in a partition whose next records have been deleted before they were read, with a warning:
    # earliest (the oldest left), latest (only what is sent from now on), or fail (the job ends).
    on_lost_records: Literal["earliest", "latest", "fail"] = "earliest"
    # Shortest round in ms. A round of reading ends, and runners hand its records on, once there are some and so much
    # time has passed since it began: shorter is sooner where many sessions speak, and dearer.
    poll_round_ms: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 80
    # Longest round in ms: while nothing comes, and while its process is busy with earlier ones, so that a job with more
    # to do than it can costs less per chunk instead of falling behind. Timers can be late by as much.
    max_round_ms: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 500
    # Most records in a round; bounds the work of a bundle when the job is catching up.
    max_round_records: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 500
    # Most records of a partition that have been read and not yet heard: with more, reading waits, and the broker keeps
    # the rest. Bounds the memory of a job that cannot keep up; up to twice as many can wait for a moment.
    max_waiting_records: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)] = 10_000
    # How far records may be behind the newest one of their partition, in ms, before the watermark has passed them.
    allowed_disorder_ms: Annotated[int, msgspec.Meta(ge=0, le=3_600_000)] = 2_000
    # After so many ms without a record, a partition that has been read to its end lets the watermark follow the clock.
    idle_partition_ms: Annotated[int, msgspec.Meta(ge=0, le=3_600_000)] = 1_000
    # A timestamp further ahead of the clock than this, in ms, is unusable: the time of reading stands in for it.
    max_future_ms: Annotated[int, msgspec.Meta(ge=0, le=86_400_000)] = 60_000
    # Compression of what is written: none, gzip, snappy, lz4 or zstd. All of these can be read.
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none"
    # Longest time in ms that a written record may take to be acknowledged by all replicas before the bundle fails.
    delivery_timeout_ms: Annotated[int, msgspec.Meta(ge=1_000, le=600_000)] = 60_000
    # Largest request that is written, in bytes; topics and brokers have limits of their own (message.max.bytes).
    max_request_bytes: Annotated[int, msgspec.Meta(ge=1_024, le=104_857_600)] = 8_388_608

    def __post_init__(self) -> None:
        if 0 < self.partition_check_ms < 100:
            raise ValueError(f"partition_check_ms must be 0 or 100..10000, got {self.partition_check_ms}")
        if self.on_missing_topic == "wait" and not self.partition_check_ms:
            raise ValueError("on_missing_topic can be wait only where partition_check_ms is above 0")
