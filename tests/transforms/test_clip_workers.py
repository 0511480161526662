"""Processes that die: the guilty row is put apart, its neighbours have their answers. The engine is one that kills."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from model_runtime.devices import RouteConfig
from model_runtime.errors import ModelError, WorkerError
from transforms.clip_inference import InferenceConfig
from transforms.clip_protocol import Settings
from transforms.clip_workers import ClipWorkers, Effort, end_idle, start_idle, take_process
from transforms.records import ClipResult, ClipRow

# Clips are answered with their length, but for some lengths, whose only effect is on the process.
_ENGINE = """
import os, signal
from model_runtime.errors import ModelError
from model_runtime.records import Final, MadeBy

class Engine:
    def run(self, clips, batch_size, tally):
        tally.calls += 1
        sizes = [len(clip.samples) for clip in clips]
        print("libraries print to stdout")
        if 11 in sizes: os.kill(os.getpid(), signal.SIGSEGV)
        if 12 in sizes: os.kill(os.getpid(), signal.SIGFPE)
        if 13 in sizes: os._exit(7)
        if 14 in sizes: signal.pause()
        if 15 in sizes: raise ZeroDivisionError("a bug")
        with open(os.environ["CALLS"], "a") as file: file.write(f"{os.getpid()} {sizes}\\n")
        return [[Final(0, 0, str(size), (), 1.0, 0, size)] for size in sizes]

    def made_by(self):
        return MadeBy("killing:1", "cpu")

def load(recipe, route):
    if recipe == "refused": raise ModelError("/m.tflite: is a Git LFS pointer")
    if recipe == "dies": os.kill(os.getpid(), signal.SIGILL)
    return Engine()
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file in which the engine writes its calls; the engine can be imported by worker processes."""
    (tmp_path / "killing_engine.py").write_text(_ENGINE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    yield tmp_path / "calls"
    end_idle()


def _settings(recipe: str = "any", **settings: object) -> Settings:
    config = InferenceConfig(**settings)  # type: ignore[arg-type]
    return Settings("killing_engine:load", recipe, RouteConfig(), config)


def _workers(**settings: object) -> ClipWorkers:
    return ClipWorkers(_settings(**settings))


def _rows(*sizes: int) -> list[ClipRow]:
    return [
        ClipRow(0, number, f"t row {number}", "t", b"{}", data=b"\0" * (4 * size), sample_rate_hz=8000)
        for number, size in enumerate(sizes)
    ]


def _run(workers: ClipWorkers, *sizes: int) -> tuple[list[str], Effort]:
    """The text or the error of every row, in their order, and what it took."""
    effort = Effort()
    results: list[ClipResult] = sorted(workers.run(_rows(*sizes), effort), key=lambda result: result.row)
    workers.close()
    assert [result.row for result in results] == list(range(len(sizes)))
    return [result.pred_text or f"{result.error_class}: {result.error}" for result in results], effort


@pytest.mark.parametrize(
    ("size", "cause"),
    [
        (11, "was killed by SIGSEGV"),
        (12, "was killed by SIGFPE"),
        (13, "ended with exit code 7"),
        (15, "ended with ZeroDivisionError: a bug"),
    ],
)
def test_row_that_kills_twice_is_put_apart_and_its_neighbours_finish(calls: Path, size: int, cause: str) -> None:
    texts, effort = _run(_workers(), 100, 101, size, 102)
    assert texts == ["100", "101", f"WorkerError: t row 2: the process that worked on it {cause}, twice", "102"]
    assert (effort.restarts, effort.quarantined) == (2, 1)


def test_row_that_never_comes_back_is_ended_after_the_limit(calls: Path) -> None:
    texts, effort = _run(_workers(time_limit_s=5.0), 100, 14)
    limit = "took longer than 5 s (inference.time_limit_s and the length of the audio)"
    assert texts == ["100", f"WorkerError: t row 1: the process that worked on it {limit}, twice"]
    assert effort.quarantined == 1


def test_several_killers_in_one_hand_are_all_found(calls: Path) -> None:
    texts, effort = _run(_workers(), 11, 100, 12, 13, 101)
    assert [text.partition(":")[0] for text in texts] == ["WorkerError", "100", "WorkerError", "WorkerError", "101"]
    assert effort.quarantined == 3


def test_rows_that_were_answered_before_a_death_are_not_done_again(calls: Path) -> None:
    """One second of audio in hand: the first rows are answered before the killer is begun."""
    texts, _ = _run(_workers(max_batch_s=1.0), 8000, 7999, 8000, 11)
    assert texts[:3] == ["8000", "7999", "8000"]
    assert sorted(line.partition(" ")[2] for line in calls.read_text().splitlines()) == ["[7999, 8000]", "[8000]"]


def test_process_that_was_killed_between_two_hands_is_replaced(calls: Path) -> None:
    workers = _workers()
    workers._process = take_process(_settings())
    process = workers._process._process
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    texts, _ = _run(workers, 100)
    assert texts == ["100"]


def test_process_is_kept_for_the_next_hand_and_taken_over_by_another(calls: Path) -> None:
    first = _workers()
    for workers in (first, first, _workers()):
        _run(workers, 100)
    pids = {line.partition(" ")[0] for line in calls.read_text().splitlines()}
    assert len(pids) == 1


def test_engine_that_cannot_be_loaded_says_what_it_says_here(calls: Path) -> None:
    with pytest.raises(ModelError, match=r"^/m.tflite: is a Git LFS pointer$"):
        start_idle(_settings("refused"), 2)


def test_engine_that_dies_at_load_is_an_error_of_the_job(calls: Path) -> None:
    with pytest.raises(WorkerError, match=r"^the process that loads the models was killed by SIGILL$"):
        start_idle(_settings("dies"), 1)


def test_processes_that_were_started_before_are_taken_over_by_as_many_workers(
    calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_idle(_settings(), 2)
    monkeypatch.setattr("transforms.clip_process.subprocess.Popen", None)
    hands = [_workers(), _workers()]
    for workers in hands:
        assert [result.pred_text for result in workers.run(_rows(100), Effort())] == ["100"]
    for workers in hands:
        workers.close()
    assert len({line.partition(" ")[0] for line in calls.read_text().splitlines()}) == 2


def test_process_that_dies_of_every_row_is_an_error_of_the_job(calls: Path) -> None:
    with pytest.raises(
        WorkerError, match=r"^the process that runs the models ended with exit code 7, whatever the row$"
    ):
        list(_workers().run(_rows(*[13] * 9), Effort()))


def test_calls_of_models_are_counted(calls: Path) -> None:
    _, effort = _run(_workers(max_batch_s=1.0), 8000, 8000, 100)
    assert effort.calls.calls == 3
