"""A graph that runs: named float arrays in and out, state handed through, on the best device that can be had."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn

import numpy as np

from model_runtime.devices import CPU, DelegateError, RouteConfig, choose_variant, open_delegate, pin_cores
from model_runtime.errors import ModelError
from model_runtime.graph_binding import BoundGraph, GraphBinding, StatePair, bind_graph
from model_runtime.graph_check import check_graph, explain_refusal
from model_runtime.graph_file import read_graph_file
from model_runtime.interpreter_pool import InterpreterPool, PrepareError
from model_runtime.quantization import requantize_table

__all__ = ["Graph", "GraphBinding", "StatePair", "batch_parts"]

_logger = logging.getLogger(__name__)

States = tuple[np.ndarray, ...]


class Graph:
    """One graph of a model on one device. Holds no state of any stream; threads may share it.

    Attributes:
        device: where calls run now: a device name of the route, or "cpu".
        reason: "" or why an earlier device of the route is not the one: delegate_missing, delegate_not_loadable,
            delegate_no_entry_points, delegate_bad_option, delegate_prepare_failed, delegate_died; or
            delegate_took_nothing, which no route refuses: a delegate need not have anything to do in every graph.
        variant: which variant's file runs; it never changes, since states belong to it.
        batch_sizes: what a call can have without being split or padded, ascending.
        input_names: our names of its inputs.
    """

    def __init__(
        self, role: str, variant: str, bound: BoundGraph, route: RouteConfig, best_batch_size: int | None = None
    ) -> None:
        self.device = CPU
        self.reason = ""
        self.variant = variant
        self.batch_sizes = bound.batch_sizes
        self.input_names = tuple(port.name for port in bound.inputs)
        self._role = role
        self._best_batch_size = best_batch_size
        self._route = route
        self._bound = bound
        self._has_batch_size = frozenset(bound.batch_sizes)
        self._inputs = [
            (port.name, port.numbers.quantize if port.numbers.scale else None, port.numbers.dtype)
            for port in bound.inputs
        ]
        self._outputs = [(port.name, port.numbers.dequantize if port.numbers.scale else None) for port in bound.outputs]
        self._states_from = len(bound.outputs)
        tables = [
            requantize_table(source.numbers, target.numbers)
            for source, target in zip(bound.state_outputs, bound.state_inputs, strict=True)
        ]
        self._tables = [(pair, table) for pair, table in enumerate(tables) if table is not None]
        self._pool = InterpreterPool(bound, route.threads)

    @classmethod
    def load(
        cls,
        paths: Mapping[str, Path],
        binding: GraphBinding,
        signature: str | None = None,
        route: RouteConfig | None = None,
        batch_sizes: tuple[int, ...] | None = None,
        best_batch_sizes: Mapping[str, int] = MappingProxyType({}),
    ) -> "Graph":
        """Gives a graph on the first device of the route that takes it.

        Args:
            paths: variant -> file; each device takes its own preferred variant.
            binding: our names of the tensors.
            signature: signature whose keys the binding means, None for the tensors' own names.
            route: devices, variants, threads; the CPU with one thread when None.
            batch_sizes: the sizes that the graph accepts, None for any (or the one that the file fixes).
            best_batch_sizes: variant -> the size above which a call on the CPU is no faster for each row.

        Raises:
            ModelError: the file is refused; path and reason.
            DeviceError: the route refuses to fall back; device and reason.
            ConfigError: the model has no variant that the route wants for a device, or cores are not available.
        """
        route = route or RouteConfig()
        pin_cores(route.cores)
        bound: dict[str, BoundGraph] = {}
        reason = ""
        for device in (*takewhile(lambda device: device != CPU, route.devices), CPU):
            variant = choose_variant(paths, route, device)
            if variant not in bound:
                file = read_graph_file(Path(paths[variant]))
                check_graph(file)
                bound[variant] = bind_graph(file, binding, signature, batch_sizes)
            graph = cls(binding.role, variant, bound[variant], route, best_batch_sizes.get(variant))
            try:
                graph._take_device(device)
            except DelegateError as error:
                if route.on_failure == "refuse" and error.reason != "delegate_took_nothing":
                    raise
                reason = reason or error.reason
                _logger.warning("graph %r (%s) is not run on %s", binding.role, paths[variant], str(error))
            else:
                break
        graph.reason = reason
        return graph

    def _take_device(self, device: str) -> None:
        """Makes the first interpreter, which is where the device, or the runtime on the CPU, refuses the file."""
        if device != CPU:
            config = self._route.delegates[device]
            make_delegate = partial(open_delegate, device, config)
            self._pool = InterpreterPool(self._bound, self._route.threads, device, make_delegate)
        self.device = device
        rows = self._bound.batch_sizes[0]
        shapes = [(rows, *port.shape[1:]) for port in self._bound.inputs + self._bound.state_inputs]
        lane = self._pool.lease(rows)
        try:
            if any(-1 in shape for shape in shapes):
                lane.open()
            else:
                lane.prepare(shapes)
        except PrepareError as error:
            if device == CPU:
                raise explain_refusal(self._bound.path, error) from error
            raise DelegateError(device, error.reason, str(error)) from error
        self._pool.give_back(rows, lane)

    @property
    def most_rows(self) -> int:
        """Rows that a call should have at most: the largest size that the graph accepts, or the best one if less."""
        largest = self.batch_sizes[-1]
        return largest if self.device != CPU else min(largest, self._best_batch_size or largest)

    def initial_states(self, n: int) -> States:
        """Gives the states of n new streams: one array [n, ...] per pair, in native dtype, meaning zero."""
        return tuple(port.numbers.zeros((n, *port.shape[1:])) for port in self._bound.state_inputs)

    def input_shape(self, role: str) -> tuple[int, ...]:
        """Gives the shape [n, ...] of an input, -1 where it is open."""
        for port in self._bound.inputs:
            if port.name == role:
                return port.shape
        raise KeyError(f"graph {self._role!r} has no input {role!r}; it has {[p.name for p in self._bound.inputs]}")

    def run(self, inputs: Mapping[str, np.ndarray], states: States = ()) -> tuple[dict[str, np.ndarray], States]:
        """Gives the outputs by name and the next states; all are arrays of their own.

        Any n goes: it is split and padded to the graph's batch sizes. The n rows do not influence each other.

        Args:
            inputs: one float32 array [n, ...] per input, by our name (integer inputs without a scale are cast). One
                that is marked read-only must never change: it may not be read again when it comes again.
            states: what initial_states or the last call of the same stream gave; not changed.

        Raises:
            ModelError: an input's shape does not fit the file, or the runtime cannot compute it.
            DeviceError: the device failed and the route refuses to fall back.
        """
        # Loop per input instead of a helper: this is called every 8 ms for every stream.
        arrays = []
        for name, quantize, dtype in self._inputs:
            values = inputs[name]
            if quantize is not None:
                values = quantize(values)
            elif values.dtype != dtype:
                values = values.astype(dtype)
            arrays.append(values)
        arrays += states
        rows = arrays[0].shape[0]
        results = self._call(rows, arrays) if rows in self._has_batch_size else self._call_in_parts(rows, arrays)
        outputs = {}
        for (name, dequantize), stored in zip(self._outputs, results, strict=False):
            outputs[name] = stored if dequantize is None else dequantize(stored)
        new_states = results[self._states_from :]
        for pair, table in self._tables:
            new_states[pair] = table[new_states[pair].view(f"u{table.itemsize}")]
        return outputs, tuple(new_states)

    def _call(self, rows: int, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """Calls an interpreter of exactly this batch size; a device that fails is replaced by the CPU."""
        pool = self._pool
        lane = pool.lease(rows)
        try:
            results = lane.call(arrays)
        except (RuntimeError, ValueError, DelegateError) as error:
            return self._call_again(pool, rows, arrays, error)
        pool.give_back(rows, lane)
        return results

    def _call_in_parts(self, rows: int, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """Splits the rows into batch sizes; a part that is too small is padded with copies of its last row."""
        if rows < 1:
            raise ModelError(f"{self._bound.path}: graph {self._role!r} needs at least one row, got {rows}")
        self._bound.check_shapes([array.shape for array in arrays])
        parts = []
        start = 0
        for taken, size in batch_parts(rows, self._bound.batch_sizes):
            part = [array[start : start + taken] for array in arrays]
            if taken < size:
                part = [np.concatenate([array, np.repeat(array[-1:], size - taken, axis=0)]) for array in part]
            parts.append([result[:taken] for result in self._call(size, part)])
            start += taken
        return [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]

    def _call_again(
        self, pool: InterpreterPool, rows: int, arrays: list[np.ndarray], error: Exception
    ) -> list[np.ndarray]:
        """Gives the same call's results from the CPU, where the graph then stays.

        This is exact: the caller holds the states, and a failed call has changed none of the arrays.
        """
        failure = _failure(pool.device, error)
        if pool.device == CPU or failure is None:
            raise ModelError(f"{self._bound.path}: graph {self._role!r} cannot be computed: {error}") from error
        if self._route.on_failure == "refuse" and failure.reason != "delegate_took_nothing":
            raise failure from error
        cpu = self._pool if self._pool is not pool else InterpreterPool(self._bound, self._route.threads)
        lane = cpu.lease(rows)
        try:
            results = lane.call(arrays)
        except RuntimeError as cpu_error:
            message = f"{self._bound.path}: graph {self._role!r} cannot be computed, on the CPU neither: {cpu_error}"
            raise ModelError(message) from cpu_error
        cpu.give_back(rows, lane)
        if pool.retire():
            self._pool, self.device, self.reason = cpu, CPU, failure.reason
            _logger.warning("graph %r (%s) goes on on the CPU: %s", self._role, self._bound.path, str(failure))
        return results

    def close(self) -> None:
        """Drops the idle interpreters; a later call makes new ones."""
        self._pool.clear()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Graph cannot be pickled: it holds interpreters; load it where it is used (DoFn.setup)")


def batch_parts(rows: int, sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Gives (rows, batch size) of each part: a batch is padded only where a quarter of it at most is wasted.

    From 4 rows on, the time of a call grows with its rows (measured on all packaged graphs and both runtimes), so 9
    rows cost less as 8 and 1 than as 16.
    """
    while rows:
        fitting = [size for size in sizes if size <= rows]
        above = next((size for size in sizes if size >= rows), None)
        size = above if above is not None and (not fitting or 4 * rows >= 3 * above) else fitting[-1]
        yield min(size, rows), size
        rows -= min(size, rows)


def _failure(device: str, error: Exception) -> DelegateError | None:
    """Gives what an error of a call says about the device, None when it is about the arrays."""
    if isinstance(error, DelegateError):
        return error
    if isinstance(error, PrepareError):
        return DelegateError(device, error.reason, str(error))
    if isinstance(error, RuntimeError):
        return DelegateError(device, "delegate_died", " ".join(str(error).split()))
    return None
