"""The runner of bounded jobs on this machine, chosen by name and not by what the machine can download."""

import os

from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions
from apache_beam.portability.api import beam_provision_api_pb2
from apache_beam.runners.portability.fn_api_runner.fn_runner import ExtendedProvisionInfo, FnApiRunner
from apache_beam.runners.portability.portable_runner import JobServiceHandle

# Workers of a runner that knows their number better.
_GUESS = 16


def is_local(options: PipelineOptions) -> bool:
    """Says whether a bounded job runs on this machine, in this process or in its children."""
    return (options.view_as(StandardOptions).runner or "DirectRunner") == "DirectRunner"


def local_runner(options: PipelineOptions) -> FnApiRunner:
    """Gives the runner that DirectRunner hands a bounded job to in the end.

    DirectRunner itself first translates the job for Prism, downloads Prism if it can, and then runs the job there: the
    same command would have other workers on a machine with a network than on one without, and each job would pay for
    the attempt.
    """
    said = JobServiceHandle.encode_pipeline_options(options.get_all_options())
    return FnApiRunner(
        provision_info=ExtendedProvisionInfo(beam_provision_api_pb2.ProvisionInfo(pipeline_options=said))
    )


def worker_count(options: PipelineOptions) -> int:
    """How many workers the local runner has; for others, that know it better, a guess."""
    if not is_local(options):
        return _GUESS
    return options.view_as(DirectOptions).direct_num_workers or os.cpu_count() or 1
