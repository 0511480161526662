"""The journal of a run: sums that grow, whole entries only. And the lock on an output."""

import subprocess
import sys
from pathlib import Path

import pytest

from model_runtime.errors import LockedError
from transforms.run_journal import Done, RunJournal
from transforms.run_lock import run_lock
from transforms.tally import Tally

_HOLD = """
import sys
from pathlib import Path
from transforms.run_lock import run_lock
with run_lock(Path(sys.argv[1]), "process 7"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_reader_sums_up_what_came_since_it_last_looked(tmp_path: Path) -> None:
    journal = RunJournal(str(tmp_path / "j"))
    reader = journal.follow()
    assert reader.read() == Done()
    journal.add(Done(Tally(3, 1, devices={"cpu": 2}), audio_ms=50))
    assert reader.read() == Done(Tally(3, 1, devices={"cpu": 2}), audio_ms=50)
    journal.add(Done(Tally(2, devices={"cpu": 1, "npu": 1}), reused=2, number=4, part="p"))
    total = Done(Tally(5, 1, devices={"cpu": 3, "npu": 1}), 2, 50)
    assert (reader.read(), reader.parts) == (total, {4: "p"})
    assert (journal.follow().read(), reader.read()) == (total, total)


def test_entry_that_is_only_half_there_waits(tmp_path: Path) -> None:
    journal = RunJournal(str(tmp_path / "j"))
    journal.add(Done(Tally(3)))
    whole = Path(journal.path).read_bytes()
    reader = journal.follow()
    Path(journal.path).write_bytes(whole + whole[:5])
    assert reader.read().rows == 3
    Path(journal.path).write_bytes(whole + whole)
    assert reader.read().rows == 6


def test_second_run_is_refused_and_told_who_holds_the_lock(tmp_path: Path) -> None:
    lock = tmp_path / ".lock"
    with run_lock(lock, "process 1 on a"), pytest.raises(LockedError) as caught, run_lock(lock, "process 2"):
        pass
    assert str(caught.value) == f"{tmp_path}: another run is writing there (process 1 on a)"
    with run_lock(lock, "process 3"):
        assert lock.read_text() == "process 3"


def test_lock_of_a_process_that_is_killed_is_free(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _HOLD, str(tmp_path / "l")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(LockedError, match=r"\(process 7\)"), run_lock(tmp_path / "l", "me"):
            pass
        holder.kill()
        holder.wait(10)
    with run_lock(tmp_path / "l", "me"):
        assert (tmp_path / "l").read_text() == "me"
