"""SessionEar: the engine's side of a session: its state, and the samples that are yet to be heard. Knows no Beam."""

import numpy as np

from model_runtime.session_state import SessionState
from transforms.lag import Lag
from transforms.overload import DENOISE, decide
from transforms.session_book import SessionBook
from transforms.session_means import SessionMeans
from transforms.session_notes import SessionNotes
from transforms.session_settings import Wishes, start_as_asked, start_with
from transforms.session_voice import Voice
from transforms.stream_records import Chunk


class SessionEar:
    """Hears for one session. Samples wait until something must be said, so that the engine is called once for all.

    The state is thawed when it is needed; without one nothing is heard.
    """

    def __init__(self, means: SessionMeans, voice: Voice, notes: SessionNotes) -> None:
        self._engine, self._output, self._overload = means.engine, means.output, means.overload
        self._voice = voice
        self._notes = notes
        self._lag: Lag | None = None
        self._state: SessionState | None = None
        self._unheard: list[np.ndarray] = []

    def mind(self, lag: Lag) -> None:
        """Takes note of how far behind the session is, for what is heard from now on."""
        self._lag = lag

    def thaw(self, book: SessionBook) -> None:
        """Takes up the state of a session, unless it is at hand.

        Raises:
            StateError: it cannot be read.
        """
        if self._state is None:
            self._state = self._engine.thaw(book.engine)

    def start(self, sample_rate_hz: int, wishes: Wishes) -> Wishes:
        """Starts a session; gives which of its wishes are granted.

        Raises:
            AudioError: the rate is out of bounds.
        """
        granted, self._state, _ = start_with(self._engine, sample_rate_hz, wishes)
        return granted

    def start_anew(self, book: SessionBook, chunk: Chunk) -> None:
        """Has a session of which nothing has been heard yet start as a chunk asks for it."""
        asked = start_as_asked(self._engine, book.sample_rate_hz, book.wishes, chunk, self._output.enhanced)
        book.wishes, self._state, problems = asked
        self._notes.refuse_settings(chunk, problems)

    def keep(self, samples: np.ndarray) -> None:
        """Keeps samples (float32 [n]) for the next call of the engine."""
        self._unheard.append(samples)

    def listen(self, book: SessionBook) -> None:
        """Lets the engine hear what has been kept, and says what it says."""
        if self._unheard and self._state is not None:
            samples = self._unheard[0] if len(self._unheard) == 1 else np.concatenate(self._unheard)
            self._unheard = []
            self._state = self._shed(book, self._state)
            self._voice.hear(book, samples)
            self._state, events = self._engine.step(self._state, samples)
            self._voice.say(book, events)

    def finish(self, book: SessionBook) -> None:
        """Hears what has been kept, and says what the engine still holds."""
        self.listen(book)
        if self._state is not None:
            _, events = self._engine.finish(self._state)
            self._voice.say(book, events)

    def freeze(self, book: SessionBook) -> None:
        """Hears what has been kept, and writes the state of an open session down."""
        if self._state is not None:
            self.listen(book)
            book.engine = self._engine.freeze(self._state)

    def close(self) -> None:
        """Lets go of the state of a session that has ended."""
        self._state = None

    def _shed(self, book: SessionBook, state: SessionState) -> SessionState:
        """Leaves out of what is about to be heard what its lag asks for, or takes it up again."""
        if self._lag is None:
            return state
        shedding = decide(book.shedding, self._lag, self._overload)
        if (DENOISE in shedding) != (DENOISE in book.shedding):
            state = state.with_denoise(DENOISE not in shedding)
        book.shedding = shedding
        book.shed = [*book.shed, *(stage for stage in shedding if stage not in book.shed)]
        for stage in shedding:
            self._notes.count(f"turns_without_{stage}")
        return state
