"""The streaming job: live sessions from Kafka through the engine, results, clean audio and dead letters to Kafka.

python -m pipelines.streaming --config configs/streaming.yaml --runner=DirectRunner --streaming
python -m pipelines.streaming --config configs/streaming.yaml @configs/flink.flags
"""

import logging
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Annotated, Any

import apache_beam as beam
import grpc
import msgspec
from apache_beam.runners.runner import PipelineResult, PipelineState
from apache_beam.utils.shared import Shared

from model_runtime.assembly import hears_whole_utterances
from model_runtime.devices import RouteConfig
from model_runtime.errors import ConfigError, SpeechError
from model_runtime.recipe import load_recipe
from pipelines.command_line import parse_command_line, report
from pipelines.configuration import load_config
from pipelines.flink import check_job_server_flags, leave_on_signals, warn_without_checkpoints, works_elsewhere
from pipelines.lean_worker import work_lean, work_lean_on_prism
from pipelines.prism import is_local, streaming_options
from service.wire import AudioDefaults
from transforms.archive_config import ArchiveConfig
from transforms.count_windows import CountResults, CountWindows, StatsConfig
from transforms.dead_letter import DEAD_LETTERS
from transforms.infer_sessions import HEARD, STATS, UTTERANCES, InferSessions
from transforms.kafka_chunks import CHUNKS, DecodeChunks
from transforms.kafka_config import KafkaConfig
from transforms.kafka_outputs import dead_letter_output, enhanced_output, result_output, stats_output
from transforms.kafka_reader import stop_reading
from transforms.kafka_topics import list_partitions
from transforms.overload import OverloadConfig
from transforms.read_kafka import ReadFromKafka
from transforms.result import ENHANCED, RESULTS
from transforms.session_config import OutputConfig, SessionConfig
from transforms.stream_records import KafkaOutput
from transforms.window_stats import StatsPart
from transforms.write_archive import WriteArchive
from transforms.write_kafka import WriteToKafka

_logger = logging.getLogger(__name__)

_STOP_S = 30


class StreamingConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that the streaming job can be told; configs/streaming.yaml shows every field."""

    # Brokers, topics, and how they are read.
    kafka: KafkaConfig = KafkaConfig()
    # What a record is taken to be where its headers say nothing.
    audio: AudioDefaults = AudioDefaults()
    # When sessions end, and how long their keys are remembered.
    session: SessionConfig = SessionConfig()
    # A packaged recipe's name, or the path of a YAML file.
    recipe: str = "streaming"
    # Devices, variants and threads.
    route: RouteConfig = RouteConfig()
    # Recipes that hear utterances whole: transcriptions that run at the same time, on route.threads cores each. With
    # Prism 4 at most, which runs 8 bundles of work at a time and needs some for the chunks.
    transcriptions: Annotated[int, msgspec.Meta(ge=1, le=256)] = 1
    # Which results are written.
    results: OutputConfig = OutputConfig()
    # Figures of the job by windows of event time.
    stats: StatsConfig = StatsConfig()
    # Finals and sessions in Parquet files by windows of event time.
    archive: ArchiveConfig = ArchiveConfig()
    # What is left out while the job cannot keep up.
    overload: OverloadConfig = OverloadConfig()

    def topics(self) -> list[str]:
        """Gives the topics that must be there."""
        topics = self.kafka.topics
        asked = [topics.enhanced] * self.results.enhanced + [topics.stats] * self.stats.write
        awaited = [topics.audio] * (self.kafka.on_missing_topic == "fail")
        return [*awaited, topics.results, topics.dead_letters, *asked]


def build(pipeline: beam.Pipeline, config: StreamingConfig, infer: InferSessions | None = None) -> None:
    """Adds the job to a pipeline.

    Args:
        infer: what make_inference gives, where the caller has it already.
    """
    topics = config.kafka.topics
    infer = infer or make_inference(config)
    records = pipeline | "ReadAudio" >> ReadFromKafka(config.kafka, topics.audio)
    decoded = records | "DecodeChunks" >> DecodeChunks(config.audio)
    inferred = decoded[CHUNKS] | "InferSessions" >> infer
    letters = (decoded[DEAD_LETTERS], inferred[DEAD_LETTERS]) | "DeadLetters" >> beam.Flatten()
    # Each kind is written where it arises: runners do not fuse what has been flattened. One producer does for all.
    producer = Shared()
    # Any: each kind has its own record.
    outputs: list[tuple[str, beam.PCollection, Callable[[Any, str], KafkaOutput], str]]
    outputs = [("Results", inferred[RESULTS], result_output, topics.results)]
    if infer.defers:
        finals = inferred[UTTERANCES] | "TranscribeUtterances" >> infer.transcription(config.transcriptions)
        outputs += [("Finals", finals, result_output, topics.results)]
    outputs += [("DeadLetters", letters, dead_letter_output, topics.dead_letters)]
    outputs += [("Enhanced", inferred[ENHANCED], enhanced_output, topics.enhanced)] * config.results.enhanced
    if config.stats.write:
        parts = [inferred[STATS], letters | "CountLetters" >> beam.Map(lambda _: StatsPart(dead_letters=1))]
        parts += [
            found | f"Count{kind}" >> CountResults() for kind, found, encode, _ in outputs if encode is result_output
        ]
        figures = tuple(parts) | "CountWindows" >> CountWindows(config.stats)
        outputs += [("Stats", figures, stats_output, topics.stats)]
    if config.archive.folder:
        said = tuple(found for _, found, encode, _ in outputs if encode is result_output)
        (said, inferred[HEARD]) | "Archive" >> WriteArchive(config.archive, config.session.max_session_ms)
    for kind, records, encode, topic in outputs:
        records | f"Write{kind}" >> WriteToKafka(config.kafka, topic, encode, producer)


def make_inference(config: StreamingConfig) -> InferSessions:
    """Gives the inference step.

    Raises:
        ConfigError, ModelError: there is no such recipe, or no such recogniser, or the recipe does not give what the
            configuration wants of it.
    """
    recipe = load_recipe(config.recipe)
    if config.results.enhanced and (recipe.denoise is None or not recipe.denoise.emit):
        raise ConfigError(
            f"results.enhanced needs a recipe that emits clean audio, got recipe {config.recipe!r}; "
            "set results.enhanced to false"
        )
    if config.overload.sheds_denoise() and recipe.denoise is None:
        raise ConfigError(f"overload.denoise_off_*: recipe {config.recipe!r} has no denoise stage; set them to 0")
    defer = hears_whole_utterances(recipe)
    return InferSessions(
        config.recipe,
        config.route,
        config.session,
        config.results,
        defer,
        count=config.stats.write,
        keep_audio=bool(config.archive.folder) and config.archive.audio != "none",
        overload=config.overload,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job until it is stopped; gives the exit code: 0 stopped, 1 failed, 2 wrong configuration."""
    logging.getLogger("kafka").setLevel(logging.WARNING)
    try:
        line = parse_command_line(argv, "python -m pipelines.streaming", "Runs live sessions from Kafka to Kafka.")
        config = load_config(line.config, line.overrides, StreamingConfig)
        check_job_server_flags(line.beam_flags)
        options = streaming_options(line.beam_flags)
        infer = make_inference(config)
        list_partitions(config.kafka, config.topics())
        # A model or device that is refused is refused here, once and in words. Local runners then share this engine.
        engine = infer.load_engine() if is_local(options) else None
    except SpeechError as error:
        return report(error)
    # What Beam and others have said until now went out in their own form; from here on all is the job's.
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True)
    if is_local(options):
        work_lean_on_prism()
    else:
        # For --environment_type=LOOPBACK; workers of the pool do so by themselves.
        work_lean()
        warn_without_checkpoints(line.beam_flags)
    pipeline = beam.Pipeline(options=options)
    build(pipeline, config, infer)
    try:
        result = pipeline.run()
    except (RuntimeError, OSError, grpc.RpcError) as error:
        _logger.error("the runner could not be started (deploy/prism.sh builds Beam's local one): %s", error)
        return 1
    stop = _Stop(result)
    if works_elsewhere(options):
        leave_on_signals()
    else:
        signal.signal(signal.SIGINT, stop)
        signal.signal(signal.SIGTERM, stop)
    try:
        return _wait(result, stop)
    finally:
        del engine


def _wait(result: PipelineResult, stop: "_Stop") -> int:
    """Waits until the job has ended, or is left alone; gives the exit code."""
    try:
        result.wait_until_finish()
    except KeyboardInterrupt:
        _logger.info("the job goes on without this process; docs/operations.md says how it is stopped with a savepoint")
    except grpc.RpcError as error:
        _logger.error("the job server is gone, the job may go on without it: %s", error)
        return 1
    except RuntimeError as error:
        if not stop.asked and result.state != PipelineState.CANCELLED:
            _logger.error("the job has failed: %s", error)
            return 1
        _logger.info("the job has been stopped")
    return 0


class _Stop:
    """What a signal does: the first one lets the job finish, a second one, or 30 s, ends it."""

    def __init__(self, result: PipelineResult) -> None:
        self.asked = False
        self._result = result

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            self._result.cancel()
            return
        self.asked = True
        _logger.info("stopping: nothing more is read, open sessions are ended; a second signal stops at once")
        stop_reading()
        watch = threading.Timer(_STOP_S, self._result.cancel)
        watch.daemon = True
        watch.start()


if __name__ == "__main__":
    sys.exit(main())
