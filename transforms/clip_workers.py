"""Runs rows in a process that may die: it is started again, and a row that kills it twice is put apart."""

import threading
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from model_runtime.calls import CallTally
from model_runtime.errors import WorkerError
from model_runtime.records import MadeBy
from transforms.clip_process import ClipProcess, Death
from transforms.clip_protocol import Answer, Ended, Settings
from transforms.heard_clip import error_result
from transforms.records import ClipResult, ClipRow

# The first death may be a neighbour's fault or bad luck; the second one, alone in the process, is the row's own.
_DEATHS = 2
# So many rows put apart before any was answered: that is no matter of rows.
_HOPELESS = 8
_NOBODY = MadeBy("", "")

_idle: dict[bytes, list[ClipProcess]] = {}
_idle_lock = threading.Lock()


class Effort(msgspec.Struct):
    """What running rows took besides the answers; it grows."""

    wait_ms: int = 0
    restarts: int = 0
    quarantined: int = 0
    calls: CallTally = msgspec.field(default_factory=CallTally)


class ClipWorkers:
    """Gives every row its result, whatever it does to the process that works on it. For one thread at a time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._process: ClipProcess | None = None
        self._answered = False
        self._put_apart = 0

    def run(self, rows: Sequence[ClipRow], effort: Effort) -> Iterator[ClipResult]:
        """Gives one result for every row, in no order.

        Raises:
            SpeechError: the models cannot be loaded.
            WorkerError: the process dies of every row.
        """
        deaths: Counter[int] = Counter()
        groups = deque([list(range(len(rows)))])
        while groups:
            group = groups.popleft()
            left = dict.fromkeys(group)
            death: Death | None = None
            for said in self._running().run([rows[index] for index in group]):
                match said:
                    case Answer(place, result):
                        del left[group[place]]
                        self._answered = True
                        yield result
                    case Ended(wait_ms, calls):
                        effort.wait_ms += wait_ms
                        effort.calls.add(calls)
                    case Death():
                        death = said
            if death is None:
                continue
            effort.restarts += 1
            # Without a word from the process, any of them may have killed it.
            suspects = [group[place] for place in death.under_way] or list(left)
            deaths.update(suspects)
            guilty = [index for index in suspects if deaths[index] >= _DEATHS]
            for index in guilty:
                effort.quarantined += 1
                self._put_apart += 1
                if not self._answered and self._put_apart >= _HOPELESS:
                    raise WorkerError(f"the process that runs the models {death.cause}, whatever the row")
                yield _quarantined(rows[index], death.cause)
            innocent = [index for index in left if index not in suspects]
            groups.extend([innocent] if innocent else [])
            groups.extend([index] for index in suspects if index not in guilty)

    def close(self) -> None:
        """Gives the process back, for others with the same settings."""
        if self._process is not None and self._process.alive:
            with _idle_lock:
                _idle.setdefault(_name(self._settings), []).append(self._process)
        self._process = None

    def _running(self) -> ClipProcess:
        if self._process is None or not self._process.alive:
            self._process = take_process(self._settings)
        return self._process


def take_process(settings: Settings) -> ClipProcess:
    """Gives an idle process with these settings, or starts one.

    Raises:
        SpeechError: the models cannot be loaded.
    """
    with _idle_lock:
        idle = _idle.get(_name(settings), [])
        while idle:
            process = idle.pop()
            if process.alive:
                return process
    return ClipProcess(settings)


def start_idle(settings: Settings, count: int) -> None:
    """Starts processes with these settings, side by side, until so many are idle.

    Raises:
        SpeechError: the models cannot be loaded.
    """
    with ThreadPoolExecutor(count) as pool:
        taken = [pool.submit(take_process, settings) for _ in range(count)]
    with _idle_lock:
        _idle.setdefault(_name(settings), []).extend(each.result() for each in taken if each.exception() is None)
    for each in taken:
        each.result()


def end_idle() -> None:
    """Ends all idle processes."""
    with _idle_lock:
        processes = [process for each in _idle.values() for process in each]
        _idle.clear()
    for process in processes:
        process.close()


def _name(settings: Settings) -> bytes:
    return msgspec.msgpack.encode(settings)


def _quarantined(row: ClipRow, cause: str) -> ClipResult:
    error = WorkerError(f"{row.name}: the process that worked on it {cause}, twice")
    return error_result(row, error, _NOBODY, error.retriable)
