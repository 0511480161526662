"""The batch job: rows of audio files, manifests and Parquet files into text, segments and clean speech.

python -m pipelines.batch --config configs/batch.yaml --set input=calls/*.wav --set output=out
"""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Annotated

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions, WorkerOptions
from apache_beam.runners.runner import PipelineResult, PipelineState
from msgspec import Meta, Struct
from tqdm import tqdm

from model_runtime.devices import RouteConfig
from model_runtime.errors import ConfigError, SpeechError
from model_runtime.recipe import load_recipe
from pipelines.command_line import make_pipeline, parse_command_line, report
from pipelines.configuration import load_config
from transforms.clip_inference import InferenceConfig
from transforms.infer_clips import METRICS, InferClips
from transforms.progress import ProgressFile
from transforms.read_clips import ReadClips, split_sources
from transforms.reading_config import ReadingConfig
from transforms.records import Slice
from transforms.sources import find_sources
from transforms.subtitles import SubtitlesConfig
from transforms.write_audio import EnhancedConfig, WriteAudio
from transforms.write_results import ResultsConfig, WriteResults
from transforms.write_subtitles import WriteSubtitles

_POLL_S = 0.2


class BatchConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The batch job's configuration; configs/batch.yaml says every field with its default."""

    input: str | tuple[str, ...]  # audio files, folders, globs, NeMo manifests, Parquet files
    output: Annotated[str, Meta(min_length=1)]  # folder of the results; made where it is missing
    recipe: Annotated[str, Meta(min_length=1)] = "batch"  # name of a packaged recipe, or the path of a YAML file
    route: RouteConfig = RouteConfig()
    reading: ReadingConfig = ReadingConfig()
    inference: InferenceConfig = InferenceConfig()
    results: ResultsConfig = ResultsConfig()
    enhanced: EnhancedConfig = EnhancedConfig()
    subtitles: SubtitlesConfig = SubtitlesConfig()


def build(
    pipeline: beam.Pipeline,
    config: BatchConfig,
    slices: Sequence[Slice] | None = None,
    infer: InferClips | None = None,
) -> beam.PCollection[str]:
    """Wires the job and gives the paths of the result files.

    Args:
        slices, infer: what find_slices and make_inference give, where the caller has them already.
    """
    slices = find_slices(config) if slices is None else slices
    infer = infer or make_inference(config)
    results = pipeline | "ReadClips" >> ReadClips(slices, config.reading) | "InferClips" >> infer
    if config.enhanced.write:
        results = results | "WriteAudio" >> WriteAudio(config.output, config.enhanced)
    if config.subtitles.formats:
        results = results | "WriteSubtitles" >> WriteSubtitles(config.output, config.subtitles)
    return results | "WriteResults" >> WriteResults(config.output, config.results, config.enhanced.write)


def find_slices(config: BatchConfig) -> list[Slice]:
    """Gives the input, cut into what a worker reads at once.

    Raises:
        ConfigError: an input matches no file.
    """
    return split_sources(find_sources(config.input), config.reading.rows_per_slice)


def make_inference(config: BatchConfig, progress: ProgressFile | None = None) -> InferClips:
    """Gives the inference step.

    Raises:
        ConfigError: there is no such recipe, or it does not give what the configuration wants of it.
    """
    recipe = load_recipe(config.recipe)
    if config.enhanced.write and (recipe.denoise is None or not recipe.denoise.emit):
        raise ConfigError(f"enhanced.write needs a recipe that emits clean audio, got recipe {config.recipe!r}")
    return InferClips(config.recipe, config.route, config.inference, config.enhanced.write, progress)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job: 0 when every row was handled, good or bad; 1 when the job failed; 2 on a wrong configuration."""
    try:
        line = parse_command_line(argv, "python -m pipelines.batch", "Turns rows of audio into text and clean speech.")
        config = load_config(line.config, line.overrides, BatchConfig)
        return _run(config, find_slices(config), _quiet(PipelineOptions(line.beam_flags)))
    except SpeechError as error:
        return report(error)


def _run(config: BatchConfig, slices: Sequence[Slice], options: PipelineOptions) -> int:
    began = time.monotonic()
    with TemporaryDirectory(prefix="unison-batch-") as folder:
        local = _is_local(options)
        progress = ProgressFile(str(Path(folder) / "rows")) if local and sys.stderr.isatty() else None
        infer = make_inference(config, progress)
        pipeline = make_pipeline(options)
        if local:
            _make_output(config.output)
        # A model or device that is refused is refused here, once and in words, and not in every worker's trace.
        engine = infer.load_engine() if local else None
        build(pipeline, config, slices, infer)
        with _progress_bar(progress, sum(part.rows for part in slices)):
            result = pipeline.run()
            state = result.wait_until_finish()
        del engine
    if state != PipelineState.DONE:
        print(f"error: the job ended in state {state}", file=sys.stderr)
        return 1
    print(summary(result, time.monotonic() - began))
    return 0


def _make_output(output: str) -> None:
    try:
        Path(output).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"output: {output!r} cannot be made: {error.strerror or error}") from error


def _quiet(options: PipelineOptions) -> PipelineOptions:
    """Keeps the worker processes' start-up chatter off the terminal, unless a level was asked for."""
    worker = options.view_as(WorkerOptions)
    worker.default_sdk_harness_log_level = worker.default_sdk_harness_log_level or "WARNING"
    return options


def _is_local(options: PipelineOptions) -> bool:
    return (options.view_as(StandardOptions).runner or "DirectRunner") == "DirectRunner"


def summary(result: PipelineResult, wall_s: float) -> str:
    """Gives the closing line: what was done, how fast, and where it ran."""
    counters = {
        counter.key.metric.name: counter.result
        for counter in result.metrics().query(beam.metrics.MetricsFilter().with_namespace(METRICS))["counters"]
    }
    audio_s = counters.get("audio_ms", 0) / 1000
    devices = [
        f"{name.partition('/')[2]} ({count} rows)" for name, count in counters.items() if name.startswith("device/")
    ]
    factor = f"{wall_s / audio_s:.4f}" if audio_s else "-"
    return (
        f"rows: {counters.get('rows', 0)}, errors: {counters.get('errors', 0)}, audio: {audio_s:.1f} s, "
        f"wall: {wall_s:.1f} s, real-time factor: {factor}, devices: {', '.join(sorted(devices)) or '-'}"
    )


@contextmanager
def _progress_bar(progress: ProgressFile | None, rows: int) -> Iterator[None]:
    """Shows the rows done on stderr while the block runs; nothing where stderr is no terminal."""
    if progress is None:
        yield
        return
    stop = Event()
    with tqdm(total=rows, unit="row", disable=None) as bar:

        def follow() -> None:
            while not stop.wait(_POLL_S):
                bar.update(progress.total() - bar.n)

        thread = Thread(target=follow, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            bar.update(progress.total() - bar.n)


if __name__ == "__main__":
    sys.exit(main())
