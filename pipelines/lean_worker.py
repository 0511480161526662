"""What Beam's Python worker does for each bundle besides its work, and how this process leaves it out.

A live job has tens of bundles a second, each with a few chunks. With what is left out here, a bundle costs a worker on
Prism less than a third of what it cost before, and its results leave sooner (docs/speed.md).
"""

import sys
import threading

from apache_beam.metrics.cells import CounterCell, DistributionCell
from apache_beam.portability.api import beam_fn_api_pb2, metrics_pb2
from apache_beam.runners.worker import statecache
from apache_beam.runners.worker.bundle_processor import (
    BundleProcessor,
    FnApiUserStateContext,
    SynchronousBagRuntimeState,
)
from apache_beam.runners.worker.sdk_worker import SdkWorker
from apache_beam.runners.worker.statesampler import StateSampler, set_current_tracker


def work_lean() -> None:
    """Lets this process not measure what no runner needs, and not wait for each state that it writes.

    Prism shows neither where time is spent nor Beam's own metrics. Flink shows each metric that it is told of, and
    counts by itself what goes in and out of a task; the times of steps would all be zero, since they come from the
    samples of states. Both take what a worker writes in its order.
    """
    BundleProcessor.monitoring_infos = _own_metrics
    statecache.get_deep_size = _size
    _sample_no_states()
    FnApiUserStateContext.commit = _commit_together


def work_lean_on_prism() -> None:
    """The same, and this process says nothing new about a bundle's progress; Flink does not ask."""
    work_lean()
    SdkWorker.process_bundle_progress = _answer_briefly


def _sample_no_states() -> None:
    """Lets this process not measure in which step of a bundle time is spent.

    A thread of its own does that in each bundle. It sleeps longer and longer, and the bundle's end waits until it has
    slept, after its results have been handed on and before the runner may use them: up to a sixth of the time that the
    bundle took, 200 ms at most.
    """
    StateSampler.start = _start_without_thread
    StateSampler.stop = _stop_without_thread


def _answer_briefly(
    worker: SdkWorker, request: beam_fn_api_pb2.ProcessBundleProgressRequest, instruction_id: str
) -> beam_fn_api_pb2.InstructionResponse:
    """Answers "nothing new" when Prism asks for the progress of a bundle.

    Prism asks every 100 ms for each bundle that runs, to find out what to split, which is turned off here, and to show
    metrics before a bundle ends. An answer in full takes a few ms of the interpreter: on a busy machine 15 % of all
    that the job does.
    """
    return beam_fn_api_pb2.InstructionResponse(
        instruction_id=instruction_id, process_bundle_progress=beam_fn_api_pb2.ProcessBundleProgressResponse()
    )


def _own_metrics(processor: BundleProcessor) -> list[metrics_pb2.MonitoringInfo]:
    """Gives the metrics that the job's own steps have changed in a bundle.

    Beam's own, four times and two sizes for each step, most of them zero, cost a bundle 2 ms.
    """
    return [
        cell.to_runner_api_monitoring_info(name.metric_name, transform)
        for transform, operation in processor.ops.items()
        for name, cell in list(operation.metrics_container.metrics.items())
        if not _is_untouched(cell)
    ]


def _is_untouched(cell: object) -> bool:
    match cell:
        case CounterCell():
            return bool(cell.get_cumulative() == 0)
        case DistributionCell():
            return bool(cell.get_cumulative().count == 0)
        case _:
            return False


def _commit_together(context: FnApiUserStateContext) -> None:
    """Writes all states of a bundle, and only then waits for the answers.

    Beam waits for the answer to each, and for each the worker's threads and the runner take turns.
    """
    answers = []
    for state in context._all_states.values():
        bag = getattr(state, "_underlying_bag_state", state)
        if not isinstance(bag, SynchronousBagRuntimeState):
            state.commit()
            continue
        if bag._cleared:
            answers.append(bag._state_handler.clear(bag._state_key))
        if bag._added_elements:
            coder = bag._value_coder.get_impl()
            answers.append(bag._state_handler.extend(bag._state_key, coder, bag._added_elements))
    for answer in answers:
        answer.get()


def _size(*values: object) -> int:
    """Gives how many bytes of memory values take, to a cache of states.

    Beam follows all that a value refers to, which takes longer than to ask the runner for the state of a session. Such
    a state is a list of bytes, and its size is a sum.
    """
    match values:
        case [list(parts)] if all(type(part) is bytes for part in parts):
            return sum(map(sys.getsizeof, parts), sys.getsizeof(parts))
        case _:
            return int(_beam_size(*values))


_beam_size = statecache.get_deep_size


def _start_without_thread(sampler: StateSampler) -> None:
    sampler.tracked_thread = threading.current_thread()
    set_current_tracker(sampler)
    sampler.started = True


def _stop_without_thread(sampler: StateSampler) -> None:
    set_current_tracker(None)
    sampler.finished = True
