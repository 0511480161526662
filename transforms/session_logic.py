"""SessionLogic: live sessions, whose memory comes in and goes out as bytes. Knows no Beam."""

from collections.abc import Callable, Sequence

from model_runtime.engine import SpeechEngine
from transforms.overload import OverloadConfig
from transforms.session import Play
from transforms.session_config import OutputConfig, SessionConfig
from transforms.session_means import SessionMeans
from transforms.session_turn import Turn
from transforms.stream_records import Chunk
from transforms.timing import clock_ms


class SessionLogic:
    """Takes sessions on, some chunks at a time. Holds no session: their memory comes in and goes out as bytes."""

    def __init__(
        self,
        engine: SpeechEngine,
        session: SessionConfig,
        output: OutputConfig,
        clock: Callable[[], int] = clock_ms,
        keep_audio: bool = False,
        overload: OverloadConfig = OverloadConfig(),  # noqa: B008  (frozen)
    ) -> None:
        """Takes what SessionMeans holds."""
        self._means = SessionMeans(engine, session, output, clock, keep_audio, overload)

    def advance(self, data: bytes | None, chunks: Sequence[Chunk]) -> Turn:
        """Takes in the next chunks (one or more) of a session whose memory is `data` (None: its key is not known).

        What is said does not depend on how many chunks come at once; one call of the engine hears them all.
        """
        return Play(self._means, chunks[0].session, data).advance(chunks)

    def expire(self, data: bytes, session: str, now_ms: int) -> Turn:
        """Does what is due at the stream time `now_ms`: gives up a gap, ends a session, forgets a tombstone.

        Where nothing is due (runners can fire early, and a chunk may have moved the deadline) only the timer changes.
        """
        return Play(self._means, session, data).expire(now_ms)
