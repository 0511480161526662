"""The batch job: rows of audio files, manifests and Parquet files into text, segments and clean speech.

python -m pipelines.batch --config configs/batch.yaml --set input=calls/*.wav --set output=out
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import apache_beam as beam
import msgspec
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, WorkerOptions
from msgspec import Meta, Struct

import transforms.coders  # noqa: F401  (registers the records' coders)
from model_runtime.card import load_card
from model_runtime.devices import RouteConfig
from model_runtime.errors import ConfigError, LockedError, SpeechError
from model_runtime.recipe import Recipe, load_recipe
from pipelines.batch_run import Job, run_job
from pipelines.command_line import make_pipeline, parse_command_line, report
from pipelines.configuration import load_config
from pipelines.flink import check_job_server_flags
from pipelines.local_runner import is_local, local_runner, worker_count
from pipelines.report import ReportConfig
from service.wire import AudioDefaults
from transforms.clip_inference import InferenceConfig
from transforms.clip_workers import end_idle
from transforms.infer_parts import InferParts
from transforms.kafka_input_config import KafkaInputConfig
from transforms.kafka_range import find_spans, is_range, parse_range
from transforms.part_file import FOLDER
from transforms.read_clips import split_sources
from transforms.reading_config import ReadingConfig
from transforms.records import Answer, Part
from transforms.replay_sessions import ReplaySessions
from transforms.replay_work import ReplayOrder
from transforms.row_key import work_fingerprint
from transforms.run_journal import RunJournal
from transforms.session_config import SessionConfig
from transforms.sources import find_sources
from transforms.subtitles import SubtitlesConfig
from transforms.work_order import WorkOrder, make_parts
from transforms.write_audio import EnhancedConfig
from transforms.write_results import ResultsConfig, WriteResults

EXIT_LOCKED = 4
"""The exit code when another run is writing to the same output."""

_SWITCHES = {"force": "do all rows anew, also those that an earlier run has finished"}
# So many parts for each worker besides the first: the local runner deals them out before it begins, by turns, and the
# more there are the less a long one matters at the end.
_PARTS_PER_WORKER = 16
# How much longer than its idle timeout a session can be without a new record: the length of one.
_LONGEST_CHUNK_MS = 60_000


class BatchConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The batch job's configuration; configs/batch.yaml says every field with its default."""

    # Audio files, folders, globs, NeMo manifests, Parquet files; or a range of a topic, kafka:TOPIC@FROM..TO, alone.
    input: str | tuple[str, ...]
    output: Annotated[str, Meta(min_length=1)]  # folder of the results; made where it is missing
    recipe: Annotated[str, Meta(min_length=1)] = "batch"  # name of a packaged recipe, or the path of a YAML file
    # What is said of rows: streaming, just what the streaming job says of the same audio; or accurate, the recogniser
    # on pieces that are cut at pauses: many at a time, also of one recording, and none cut in a word.
    answer: Answer = "streaming"
    route: RouteConfig = RouteConfig()
    # Share of bad rows, of all rows of the input, above which the job ends with exit code 3; 1: never.
    max_error_ratio: Annotated[float, Meta(ge=0, le=1)] = 1.0
    reading: ReadingConfig = ReadingConfig()
    inference: InferenceConfig = InferenceConfig()
    results: ResultsConfig = ResultsConfig()
    enhanced: EnhancedConfig = EnhancedConfig()
    subtitles: SubtitlesConfig = SubtitlesConfig()
    report: ReportConfig = ReportConfig()
    # Input out of Kafka alone: brokers, and how the work is shared.
    kafka: KafkaInputConfig = KafkaInputConfig()
    # What a record is taken to be where its headers say nothing; that of the live job.
    audio: AudioDefaults = AudioDefaults()
    # When sessions end; that of the live job.
    session: SessionConfig = SessionConfig()

    @property
    def replays(self) -> bool:
        """Whether the input is a range of a topic."""
        return any(map(is_range, [self.input] if isinstance(self.input, str) else self.input))


def build(
    pipeline: beam.Pipeline,
    config: BatchConfig,
    parts: Sequence[Part] | None = None,
    step: InferParts | ReplaySessions | None = None,
) -> beam.PCollection[str]:
    """Wires the job and gives the paths of the result files. The output folder must be the same for all workers.

    Args:
        parts: what find_parts gives, where the caller has it already; none for a range of a topic.
        step: what make_inference or make_replay gives, likewise.
    """
    step = step or (make_replay(config) if config.replays else None)
    if isinstance(step, ReplaySessions):
        done, count = pipeline | "ReplaySessions" >> step, config.kafka.parts
    else:
        parts = find_parts(config) if parts is None else parts
        created = pipeline | "Parts" >> beam.Create(parts, reshuffle=False).with_output_types(Part)
        done, count = created | "InferParts" >> (step or make_inference(config, parts)), len(parts)
    return done | "WriteResults" >> WriteResults(config.output, config.results, config.enhanced.write, count)


def find_parts(config: BatchConfig, least_parts: int = 0) -> list[Part]:
    """Gives the input, cut into what a worker does at once.

    Raises:
        ConfigError: an input matches no file.
    """
    slices = split_sources(find_sources(config.input), config.reading.rows_per_slice)
    return make_parts(slices, config.results.rows_per_part, least_parts)


def make_inference(config: BatchConfig, parts: Sequence[Part], force: bool = False) -> InferParts:
    """Gives the inference step.

    Raises:
        ConfigError: there is no such recipe, or it does not give what the configuration wants of it.
    """
    recipe = load_recipe(config.recipe)
    if config.enhanced.write and (recipe.denoise is None or not recipe.denoise.emit):
        raise ConfigError(f"enhanced.write needs a recipe that emits clean audio, got recipe {config.recipe!r}")
    if config.answer == "accurate":
        _check_accurate(config.recipe, recipe)
    reading = config.reading
    settings = (
        config.answer,
        config.inference.max_clip_s,
        (reading.audio_column, reading.max_row_bytes, reading.sample_rate_hz),
        config.enhanced,
        config.subtitles,
    )
    order = WorkOrder(
        output=config.output,
        recipe=config.recipe,
        route=config.route,
        reading=reading,
        inference=config.inference,
        answer=config.answer,
        enhanced=config.enhanced,
        subtitles=config.subtitles,
        fingerprint=work_fingerprint(config.recipe, config.route, settings),
        journal=_journal(config),
        force=force,
        max_errors=int(config.max_error_ratio * sum(part.rows for part in parts)),
    )
    return InferParts(order)


def _check_accurate(name: str, recipe: Recipe) -> None:
    if recipe.vad is None or recipe.asr is None:
        raise ConfigError(f"answer=accurate needs a recipe with vad and asr, got recipe {name!r}")
    if load_card(recipe.asr.model).kind == "whisper" and not recipe.asr.whisper.word_times:
        raise ConfigError(f"answer=accurate needs words with times: asr.whisper.word_times is false in recipe {name!r}")


def make_replay(config: BatchConfig, force: bool = False) -> ReplaySessions:
    """Gives the replay of a range of a topic; asks the broker where it lies.

    Raises:
        ConfigError: it is not written so or does not stand alone, no broker answers, there is no such topic, or the
            configuration wants what only files have.
    """
    if not isinstance(config.input, str):
        if len(config.input) > 1:
            raise ConfigError(f"input: a range of a topic must stand alone, got {len(config.input)} inputs")
        return make_replay(msgspec.structs.replace(config, input=config.input[0]), force)
    if config.enhanced.write or config.subtitles.formats:
        raise ConfigError("enhanced.write and subtitles.formats are for audio files, not for a range of a topic")
    if config.answer != "streaming":
        raise ConfigError(f"answer must be streaming for a range of a topic, got {config.answer}")
    wanted, source = parse_range(config.input), config.kafka.source()
    found_ms = int(time.time() * 1000)
    settings = (config.audio, config.session, config.kafka.allowed_disorder_ms, config.kafka.max_future_ms)
    order = ReplayOrder(
        output=config.output,
        topic=wanted.topic,
        spans=find_spans(source, wanted, config.session.idle_timeout_ms + _LONGEST_CHUNK_MS),
        found_ms=found_ms,
        recipe=config.recipe,
        route=config.route,
        kafka=config.kafka,
        audio=config.audio,
        session=config.session,
        fingerprint=work_fingerprint(config.recipe, config.route, settings),
        journal=_journal(config),
        force=force,
    )
    return ReplaySessions(order)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job; the exit codes are those of docs/batch.md."""
    try:
        line = parse_command_line(
            argv, "python -m pipelines.batch", "Turns rows of audio into text and clean speech.", _SWITCHES
        )
        config = load_config(line.config, line.overrides, BatchConfig)
        check_job_server_flags(line.beam_flags)
        options = _quiet(PipelineOptions(line.beam_flags))
        force = "force" in line.switches
        parts: list[Part] = []
        if config.replays:
            step: InferParts | ReplaySessions = make_replay(config, force)
            rows, count = None, config.kafka.parts
        else:
            parts = find_parts(config, _PARTS_PER_WORKER * (worker_count(options) - 1))
            step = make_inference(config, parts, force)
            rows, count = sum(part.rows for part in parts), len(parts)
        _work_in_threads(options, config)
        pipeline = make_pipeline(options, local_runner(options) if is_local(options) else None)

        def execute() -> str:
            if is_local(options):
                # A model or device that is refused is refused here, once and in words, and not in every worker's trace.
                mode = options.view_as(DirectOptions).direct_running_mode
                step.load(worker_count(options) if mode == "multi_threading" else 1)
                if mode == "multi_processing":
                    # The workers are other processes and start their own.
                    end_idle()
            build(pipeline, config, parts, step)
            return str(pipeline.run().wait_until_finish())

        journal = RunJournal(step.order.journal)
        job = Job(Path(config.output), journal, rows, count, config.max_error_ratio, config.report, config)
        try:
            return run_job(job, execute)
        finally:
            end_idle()
    except LockedError as error:
        report(error)
        return EXIT_LOCKED
    except SpeechError as error:
        return report(error)


def _journal(config: BatchConfig) -> str:
    return str(Path(config.output) / FOLDER / "journal")


def _quiet(options: PipelineOptions) -> PipelineOptions:
    """Keeps local worker processes' start-up chatter off the terminal, unless a level was asked for."""
    if is_local(options):
        worker = options.view_as(WorkerOptions)
        worker.default_sdk_harness_log_level = worker.default_sdk_harness_log_level or "WARNING"
    return options


def _work_in_threads(options: PipelineOptions, config: BatchConfig) -> None:
    """Makes threads of the local runner's worker processes where models have processes of their own.

    Those do the work: a second process for each worker would only take memory, and seconds to start.
    """
    direct = options.view_as(DirectOptions)
    if direct.direct_running_mode == "multi_processing" and config.inference.isolate and not config.replays:
        direct.direct_running_mode = "multi_threading"


if __name__ == "__main__":
    sys.exit(main())
