"""The pool of workers as a process; its workers are tested in tests/flink."""

import socket

import pytest

from pipelines.worker_pool import main


def test_a_port_that_is_taken_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["--port", str(port)]) == 1
    assert f"127.0.0.1:{port}" in capfd.readouterr().err
