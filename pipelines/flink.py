"""What a job on Apache Flink needs besides Beam's options: flags that the job server knows, and a way to leave it."""

import logging
import signal
from collections.abc import Sequence
from types import FrameType

import grpc
from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions
from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc

from model_runtime.errors import ConfigError
from pipelines.command_line import flag_name, is_portable, unknown_flags

_logger = logging.getLogger(__name__)

_ANSWER_S = 60


def check_job_server_flags(flags: Sequence[str]) -> None:
    """Refuses flags that neither Beam nor the job server at --job_endpoint knows; without one there is nothing to do.

    A misspelt --checkpointing_interval would else be passed over in silence, and the job run without checkpoints.

    Raises:
        ConfigError: names the flag; or no job server answers.
    """
    options = PipelineOptions(list(flags))
    endpoint = options.view_as(PortableOptions).job_endpoint
    if not endpoint or endpoint == "embed" or not is_portable(options):
        return
    known = _job_server_options(endpoint)
    for flag in unknown_flags(flags):
        if flag_name(flag) not in known:
            raise ConfigError(f"--{flag_name(flag)} is no option: not of Beam and not of the job server at {endpoint}")
    # Beam warns of each flag that is the job server's.
    logging.getLogger("apache_beam.options.pipeline_options").addFilter(_is_no_false_alarm)


def warn_without_checkpoints(flags: Sequence[str]) -> None:
    """Says what it means when nobody has asked for checkpoints."""
    if "checkpointing_interval" not in map(flag_name, flags):
        _logger.warning(
            "no --checkpointing_interval is given: unless the cluster's own settings have one, the first failure ends "
            "the job and all that its sessions remember (configs/flink.flags has what a stream needs)"
        )


def works_elsewhere(options: PipelineOptions) -> bool:
    """Says whether the workers are other processes than this one, so that the job goes on when this one ends."""
    return options.view_as(PortableOptions).environment_type not in (None, "LOOPBACK")


def leave_on_signals() -> None:
    """Lets SIGINT and SIGTERM raise KeyboardInterrupt here, which harms nobody whose job runs elsewhere."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)


def _leave(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _job_server_options(endpoint: str) -> set[str]:
    with grpc.insecure_channel(endpoint) as channel:
        service = beam_job_api_pb2_grpc.JobServiceStub(channel)
        request = beam_job_api_pb2.DescribePipelineOptionsRequest()
        try:
            answer = service.DescribePipelineOptions(request, timeout=_ANSWER_S)
        except grpc.RpcError as error:
            raise ConfigError(f"job_endpoint: no job server answers at {endpoint}: {error.details()}") from error
    return {option.name for option in answer.options}


def _is_no_false_alarm(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("Unparseable argument")
