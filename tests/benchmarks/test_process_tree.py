"""CPU time and memory of processes and their children."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from benchmarks.peers.process_tree import process_cpu_s, process_rss_bytes, tree

# It starts itself once more, holds 64 MB, says its number, and waits for the end of its input.
_PROGRAM = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1], ""]) if sys.argv[1] else None
if child is None:
    held = bytearray(64 << 20)
    print(os.getpid(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def parent() -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", _PROGRAM, _PROGRAM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.communicate()


def test_a_tree_holds_the_children_and_their_memory(parent: "subprocess.Popen[str]") -> None:
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert tree(parent.pid) == [parent.pid, child]
    assert process_rss_bytes(child) > 64 << 20


def test_the_cpu_time_is_that_of_all_threads_and_ended_children() -> None:
    times = os.times()
    before_s = sum(times[:4])
    assert before_s - 0.05 <= process_cpu_s(os.getpid()) <= sum(os.times()[:4]) + 0.05


def test_of_a_process_that_has_ended_nothing_is_counted() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(60)
    assert (tree(process.pid), process_cpu_s(process.pid), process_rss_bytes(process.pid)) == ([process.pid], 0.0, 0)
