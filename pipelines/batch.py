"""The batch job: rows of audio files, manifests and Parquet files into text, segments and clean speech.

python -m pipelines.batch --config configs/batch.yaml --set input=calls/*.wav --set output=out
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import apache_beam as beam
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions, WorkerOptions
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
from pipelines.report import ReportConfig
from transforms.clip_inference import InferenceConfig
from transforms.clip_workers import end_idle
from transforms.infer_parts import InferParts
from transforms.part_file import FOLDER
from transforms.read_clips import split_sources
from transforms.reading_config import ReadingConfig
from transforms.records import Answer, Part
from transforms.row_key import work_fingerprint
from transforms.run_journal import RunJournal
from transforms.sources import find_sources
from transforms.subtitles import SubtitlesConfig
from transforms.work_order import WorkOrder, make_parts
from transforms.write_audio import EnhancedConfig
from transforms.write_results import ResultsConfig, WriteResults

EXIT_LOCKED = 4
"""The exit code when another run is writing to the same output."""

_SWITCHES = {"force": "do all rows anew, also those that an earlier run has finished"}
# So many parts for each worker besides the first, so that all are busy to the end.
_PARTS_PER_WORKER = 4


class BatchConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The batch job's configuration; configs/batch.yaml says every field with its default."""

    input: str | tuple[str, ...]  # audio files, folders, globs, NeMo manifests, Parquet files
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


def build(
    pipeline: beam.Pipeline, config: BatchConfig, parts: Sequence[Part] | None = None, infer: InferParts | None = None
) -> beam.PCollection[str]:
    """Wires the job and gives the paths of the result files. The output folder must be the same for all workers.

    Args:
        parts, infer: what find_parts and make_inference give, where the caller has them already.
    """
    parts = find_parts(config) if parts is None else parts
    infer = infer or make_inference(config, parts)
    done = pipeline | "Parts" >> beam.Create(parts, reshuffle=False).with_output_types(Part) | "InferParts" >> infer
    return done | "WriteResults" >> WriteResults(config.output, config.results, config.enhanced.write, len(parts))


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
        journal=str(Path(config.output) / FOLDER / "journal"),
        force=force,
        max_errors=int(config.max_error_ratio * sum(part.rows for part in parts)),
    )
    return InferParts(order)


def _check_accurate(name: str, recipe: Recipe) -> None:
    if recipe.vad is None or recipe.asr is None:
        raise ConfigError(f"answer=accurate needs a recipe with vad and asr, got recipe {name!r}")
    if load_card(recipe.asr.model).kind == "whisper" and not recipe.asr.whisper.word_times:
        raise ConfigError(f"answer=accurate needs words with times: asr.whisper.word_times is false in recipe {name!r}")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job; the exit codes are those of docs/batch.md."""
    try:
        line = parse_command_line(
            argv, "python -m pipelines.batch", "Turns rows of audio into text and clean speech.", _SWITCHES
        )
        config = load_config(line.config, line.overrides, BatchConfig)
        check_job_server_flags(line.beam_flags)
        options = _quiet(PipelineOptions(line.beam_flags))
        parts = find_parts(config, _PARTS_PER_WORKER * (_workers(options) - 1))
        infer = make_inference(config, parts, "force" in line.switches)
        pipeline = make_pipeline(options)

        def execute() -> str:
            if _is_local(options):
                # A model or device that is refused is refused here, once and in words, and not in every worker's trace.
                infer.load()
                if options.view_as(DirectOptions).direct_running_mode == "multi_processing":
                    # The workers are other processes and start their own.
                    end_idle()
            build(pipeline, config, parts, infer)
            return str(pipeline.run().wait_until_finish())

        order, rows = infer.order, sum(part.rows for part in parts)
        job = Job(
            Path(order.output), RunJournal(order.journal), rows, len(parts), order.max_errors, config.report, config
        )
        try:
            return run_job(job, execute)
        finally:
            end_idle()
    except LockedError as error:
        report(error)
        return EXIT_LOCKED
    except SpeechError as error:
        return report(error)


def _quiet(options: PipelineOptions) -> PipelineOptions:
    """Keeps local worker processes' start-up chatter off the terminal, unless a level was asked for."""
    if _is_local(options):
        worker = options.view_as(WorkerOptions)
        worker.default_sdk_harness_log_level = worker.default_sdk_harness_log_level or "WARNING"
    return options


def _is_local(options: PipelineOptions) -> bool:
    return (options.view_as(StandardOptions).runner or "DirectRunner") == "DirectRunner"


def _workers(options: PipelineOptions) -> int:
    """How many workers the local runner has; for others, that know it better, a guess."""
    if not _is_local(options):
        return 16
    return options.view_as(DirectOptions).direct_num_workers or os.cpu_count() or 1


if __name__ == "__main__":
    sys.exit(main())
