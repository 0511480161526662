"""Interpreters of one file on one device, leased to one thread at a time, and never carried over a fork."""

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from model_runtime.devices import CPU
from model_runtime.graph_binding import BoundGraph
from model_runtime.tflite import RESIZING_IS_EXACT, Calls, NothingDelegatedError, make_interpreter

__all__ = ["InterpreterPool", "Lane", "PrepareError"]


# What an empty error means: the runtime prints the reason instead of raising it.
_SILENT = "see standard error; often a delegate for fixed sizes got a graph that computes sizes while it runs"


class PrepareError(RuntimeError):
    """An interpreter could not be made or resized; the cause is what the runtime raised.

    reason: delegate_prepare_failed or delegate_took_nothing, where a delegate was used.
    """

    def __init__(self, cause: Exception) -> None:
        super().__init__(" ".join(str(cause).split()) or _SILENT)
        nothing = isinstance(cause, NothingDelegatedError)
        self.reason = "delegate_took_nothing" if nothing else "delegate_prepare_failed"


class Lane:
    """One interpreter with its shapes: arrays in, arrays out. Not thread-safe."""

    def __init__(self, bound: BoundGraph, threads: int, make_delegate: Callable[[], Any] | None) -> None:
        self._bound = bound
        self._threads = threads
        self._make_delegate = make_delegate
        self._inputs = tuple(port.tensor_index for port in bound.inputs)
        self._state_inputs = tuple(port.tensor_index for port in bound.state_inputs)
        self._outputs = tuple(port.tensor_index for port in bound.outputs + bound.state_outputs)
        self._shapes: list[tuple[int, ...]] = []
        # Read-only inputs of the last call, which the interpreter still holds.
        self._held: list[np.ndarray | None] = [None] * len(self._inputs)
        self._interpreter: Any = None
        # Its calls, a `Calls`.
        self._calls: Any = None

    def call(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """Gives the outputs as arrays of their own; `arrays` are the inputs, then the states, in native dtype.

        An input that owns its data and is marked read-only is not copied again when the call before had the very
        same one: a decoder hears the same 18 MB at each of its steps.

        Raises:
            ModelError: the file does not allow these shapes.
            PrepareError: the interpreter cannot be had for them.
            RuntimeError: the call itself failed.
        """
        shapes = [array.shape for array in arrays]
        if shapes != self._shapes:
            self._bound.check_shapes(shapes)
            self.prepare(shapes)
        set_tensor, get_tensor, invoke = self._calls
        held = self._held
        for place, index in enumerate(self._inputs):
            array = arrays[place]
            if array is not held[place]:
                set_tensor(index, array)
                held[place] = None if array.flags.writeable or array.base is not None else array
        for index, array in zip(self._state_inputs, arrays[len(held) :], strict=True):
            set_tensor(index, array)
        invoke()
        # get_tensor copies; a view would block the next invoke (google-coral/tflite#42).
        return list(map(get_tensor, self._outputs, repeat(0)))

    def prepare(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Makes the interpreter ready for inputs of these shapes.

        Raises:
            PrepareError: the runtime or the delegate refuses.
            DelegateError: there is no delegate.
        """
        self._held = [None] * len(self._inputs)
        # The interpreter counts who refers to it, and is not resized while its calls are held.
        self._shapes, self._calls = [], None
        pairs = list(zip(self._inputs + self._state_inputs, shapes, strict=True))
        try:
            if self._interpreter is not None and self._make_delegate is None and RESIZING_IS_EXACT:
                for index, shape in pairs:
                    self._interpreter.resize_tensor_input(index, shape)
                self._interpreter.allocate_tensors()
            else:
                # A delegate can make the graph immutable, and a runtime can round by what was heard before: then new
                # shapes need a new interpreter.
                self._interpreter = None
                delegate = self._make_delegate() if self._make_delegate else None
                self._interpreter = make_interpreter(self._bound.path, self._threads, pairs, delegate)
        except (RuntimeError, ValueError) as error:
            self._interpreter = None
            raise PrepareError(error) from error
        self._shapes, self._calls = list(shapes), Calls.of(self._interpreter)

    def open(self) -> None:
        """Opens file and delegate, as far as that goes before the shapes are known.

        Raises:
            PrepareError: the runtime refuses the file.
            DelegateError: there is no delegate.
        """
        if self._make_delegate:
            self._make_delegate()
        try:
            make_interpreter(self._bound.path, self._threads, ())
        except (RuntimeError, ValueError) as error:
            raise PrepareError(error) from error


class InterpreterPool:
    """Lanes by batch size: as many as there were calls at once. Thread-safe; empty in a forked child.

    Attributes:
        device: where its interpreters run; CPU when there is no delegate.
    """

    def __init__(
        self, bound: BoundGraph, threads: int, device: str = CPU, make_delegate: Callable[[], Any] | None = None
    ) -> None:
        self.device = device
        self._bound = bound
        self._threads = threads
        self._make_delegate = make_delegate
        self._lock = threading.Lock()
        self._idle: dict[int, list[Lane]] = {}
        self._retired = False
        _pools.add(self)

    def lease(self, rows: int) -> Lane:
        """Gives a lane that nobody else uses; give it back, unless it failed."""
        # Without the lock, here and below: both are one step of a list, and there are 50 calls in a second of audio.
        try:
            return self._idle[rows].pop()
        except (KeyError, IndexError):
            return Lane(self._bound, self._threads, self._make_delegate)

    def give_back(self, rows: int, lane: Lane) -> None:
        """Takes a lane back for the next caller of that batch size."""
        if not self._retired:
            self._idle.setdefault(rows, []).append(lane)

    def clear(self) -> None:
        """Drops the idle lanes."""
        with self._lock:
            self._idle = {}

    def retire(self) -> bool:
        """Drops the idle lanes for good; gives True to the first caller alone."""
        with self._lock:
            first, self._retired = not self._retired, True
            self._idle = {}
        return first

    def _abandon(self) -> None:
        _abandoned.append(self._idle)
        self._lock = threading.Lock()
        self._idle = {}


_pools: "weakref.WeakSet[InterpreterPool]" = weakref.WeakSet()
# A forked child has the parent's interpreters without the threads behind them: an invoke would wait for them for
# ever, and so would the destructor. They are kept, unused.
_abandoned: list[dict[int, list[Lane]]] = []


def _after_fork() -> None:
    for pool in list(_pools):
        pool._abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
