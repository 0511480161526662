"""Beam's options for a stream on Prism."""

import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from apache_beam.options.pipeline_options import (
    DebugOptions,
    PipelineOptions,
    PortableOptions,
    PrismRunnerOptions,
    StandardOptions,
    WorkerOptions,
)

# A portable job loses its driver when this time is over, 300 s by default: ten years.
_JOB_SERVER_TIMEOUT_S = 315_360_000
# States of sessions that the worker need not ask Prism for.
_STATE_CACHE_MB = 100


def streaming_options(flags: Sequence[str]) -> PipelineOptions:
    """Gives Beam's options with what a stream needs: streaming, no time limit, and the Prism that has been built."""
    options = PipelineOptions(list(flags))
    standard = options.view_as(StandardOptions)
    standard.streaming = True
    if is_local(options):
        # What DirectRunner chooses for a stream; but where Prism does not start, it goes on without a word, and with a
        # runner that never gives a result.
        standard.runner = "PrismRunner"
    portable = options.view_as(PortableOptions)
    portable.job_server_timeout = max(portable.job_server_timeout, _JOB_SERVER_TIMEOUT_S)
    if not is_local(options):
        return options
    # Prism splits a slow bundle between the elements of one key and then runs both halves of it at the same time, each
    # with the state from before: what one has heard is lost (seen with 2.77).
    options.view_as(DebugOptions).add_experiment("prism_disable_sdf_split")
    worker = options.view_as(WorkerOptions)
    worker.max_cache_memory_usage_mb = worker.max_cache_memory_usage_mb or _STATE_CACHE_MB
    prism = options.view_as(PrismRunnerOptions)
    if not prism.prism_location:
        cache = Path(os.environ.get("UNISON_CACHE") or Path.home() / ".cache" / "unison-speech")
        built = cache / f"prism-{version('apache-beam')}-mended-2" / "prism"
        prism.prism_location = str(built) if built.exists() else None
    return options


def is_local(options: PipelineOptions) -> bool:
    """Says whether the pipeline runs on this machine, on Prism."""
    runner = options.view_as(StandardOptions).runner or "DirectRunner"
    return runner.rpartition(".")[2] in ("DirectRunner", "PrismRunner")
