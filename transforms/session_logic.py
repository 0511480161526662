"""SessionLogic: live sessions, whose memory comes in and goes out as bytes. Knows no Beam."""

from collections.abc import Callable, Sequence
from functools import partial

from model_runtime.engine import SpeechEngine
from transforms.session import Play
from transforms.session_config import OutputConfig, SessionConfig
from transforms.session_turn import Turn
from transforms.stream_records import Chunk
from transforms.timing import clock_ms


class SessionLogic:
    """Takes sessions on, some chunks at a time. Holds no session: their memory comes in and goes out as bytes."""

    def __init__(
        self, engine: SpeechEngine, session: SessionConfig, output: OutputConfig, clock: Callable[[], int] = clock_ms
    ) -> None:
        """clock: Unix ms; only the timing of results comes from it."""
        self._play = partial(Play, engine, session, output, clock)

    def advance(self, data: bytes | None, chunks: Sequence[Chunk]) -> Turn:
        """Takes in the next chunks (one or more) of a session whose memory is `data` (None: its key is not known).

        What is said does not depend on how many chunks come at once; one call of the engine hears them all.
        """
        return self._play(chunks[0].session, data).advance(chunks)

    def expire(self, data: bytes, session: str, now_ms: int) -> Turn:
        """Does what is due at the stream time `now_ms`: gives up a gap, ends a session, forgets a tombstone.

        Where nothing is due (runners can fire early, and a chunk may have moved the deadline) only the timer changes.
        """
        return self._play(session, data).expire(now_ms)
