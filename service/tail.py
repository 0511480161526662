"""Shows results as they come.

python -m service.tail --bootstrap-servers 127.0.0.1:19092 --from-beginning
"""

import argparse
import shutil
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from service.produce import DEFAULT_BOOTSTRAP_SERVERS
from service.wire import decode_result

# Fields as the wire has them; their values are strings, numbers and lists.
Fields = dict[str, Any]


# What stands behind the text of an utterance that is not over, or may be.
_PROVISIONAL = {"partial": "...", "speech_resumed": "...", "tentative_end": "(over?)"}


class Follower:
    """Follows a topic of results from where it stands when this is made, or from its beginning."""

    def __init__(self, bootstrap_servers: str, topic: str, from_beginning: bool = False) -> None:
        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap_servers,
            enable_auto_commit=False,
            auto_offset_reset="earliest" if from_beginning else "latest",
            isolation_level="read_committed",
            allow_auto_create_topics=False,
        )
        partitions = [TopicPartition(topic, number) for number in self._consumer.partitions_for_topic(topic)]
        if not partitions:
            self._consumer.close()
            raise KafkaError(f"there is no topic {topic}")
        self._consumer.assign(partitions)
        self._polled: deque[bytes | None] = deque()
        for partition in partitions:
            # Asks for the place now, so that nothing sent from here on is missed.
            self._consumer.position(partition)

    def results(self, timeout_s: float | None = None) -> Iterator[bytes | None]:
        """Gives the JSON of each result as it comes, and None now and then while there is none.

        Ends after `timeout_s`. Whoever leaves off in the middle and asks again gets what comes next.
        """
        end_s = None if timeout_s is None else time.monotonic() + timeout_s
        while end_s is None or time.monotonic() < end_s:
            polled = self._consumer.poll(timeout_ms=100)
            self._polled.extend(record.value for records in polled.values() for record in records)
            if not self._polled:
                yield None
            while self._polled:
                yield self._polled.popleft()

    def close(self) -> None:
        """Lets go of the broker."""
        self._consumer.close()


class Display:
    """Turns results into what is written: a line per final and, on a terminal, the newest partial below them."""

    def __init__(self, width: int | None) -> None:
        # The terminal's width, or None where the output is no terminal.
        self._width = width

    def show(self, result: Fields) -> str:
        """Gives what is to be written for a result; nothing for most types."""
        kind, session = result["type"], result["session"]
        if kind in _PROVISIONAL and self._width is not None:
            line = f"{session}: {result['text']} {_PROVISIONAL[kind]}"
            return "\r\x1b[K" + (line if len(line) < self._width else "…" + line[2 - self._width :])
        clear = "" if self._width is None else "\r\x1b[K"
        if kind == "final":
            latency = "" if result["latency_ms"] is None else f"  ({result['latency_ms']} ms)"
            span = f"{result['start_ms'] / 1000:.2f}-{result['end_ms'] / 1000:.2f}"
            return f"{clear}{session}  {span}  {result['text']}{latency}\n"
        if kind == "session_end" and self._width is not None:
            return f"{clear}{session}  ended after {result['audio_ms'] / 1000:.2f} s ({result['reason']})\n"
        return ""


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0 all sessions seen, or stopped; 1 the time is over, or Kafka is not there."""
    parser = argparse.ArgumentParser("python -m service.tail", description="Shows results as they come.")
    parser.add_argument("--bootstrap-servers", default=DEFAULT_BOOTSTRAP_SERVERS, help="default: %(default)s")
    parser.add_argument("--topic", default="speech.results", help="default: %(default)s")
    parser.add_argument("--json", action="store_true", help="every result as the JSON it is on the wire")
    parser.add_argument("--once", action="store_true", help="leaves out results that have been written before")
    parser.add_argument("--from-beginning", action="store_true", help="also what was written before")
    parser.add_argument("--sessions", type=int, help="ends when so many sessions have ended")
    parser.add_argument("--timeout", type=float, help="ends after so many seconds; with --sessions that is a failure")
    args = parser.parse_args(argv)
    display = Display(shutil.get_terminal_size().columns if sys.stdout.isatty() else None)
    try:
        with closing(Follower(args.bootstrap_servers, args.topic, args.from_beginning)) as follower:
            ended = _show(follower, display, args)
    except KafkaError as error:
        print(f"{args.topic} on {args.bootstrap_servers}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    if args.sessions is not None and ended < args.sessions:
        print(f"{ended} of {args.sessions} sessions have ended within {args.timeout} s", file=sys.stderr)
        return 1
    return 0


class Once:
    """Tells results that are written again, after a restart or a failure, from new ones, among the newest of them."""

    def __init__(self, remembered: int = 100_000) -> None:
        self._remembered = remembered
        # The order of insertion is the order of age.
        self._ids: dict[str, None] = {}

    def is_new(self, result: Fields) -> bool:
        """Says whether no result with this id was seen before, and remembers it."""
        result_id = result["result_id"]
        if result_id in self._ids:
            return False
        self._ids[result_id] = None
        if len(self._ids) > self._remembered:
            del self._ids[next(iter(self._ids))]
        return True


def _show(follower: Follower, display: Display, args: argparse.Namespace) -> int:
    """Writes results until the time is over or enough sessions have ended; gives how many have."""
    ended: set[str] = set()
    once = Once()
    for value in follower.results(args.timeout):
        if value is None:
            continue
        result: Fields = decode_result(value)
        if args.once and not once.is_new(result):
            continue
        sys.stdout.write(value.decode() + "\n" if args.json else display.show(result))
        sys.stdout.flush()
        if result["type"] == "session_end":
            # By id: what is written again after a restart is the same session.
            ended.add(result["result_id"])
        if args.sessions is not None and len(ended) >= args.sessions:
            break
    return len(ended)


if __name__ == "__main__":
    sys.exit(main())
