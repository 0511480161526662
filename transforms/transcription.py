"""Transcription: the finals and partials of utterances that live sessions have handed on. Knows no Beam."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

from model_runtime.engine import SpeechEngine
from model_runtime.records import Event
from transforms.result import Result, event_to_result
from transforms.stream_records import SpokenUtterance

# Once so much time has been spent on what came together, no more partials are begun. Finals wait for them.
_PARTIALS_S = 0.5
# Utterances under way whose last decoding is remembered.
_MOST_REMEMBERED = 1_000

_Key = tuple[str, int, int]


class _Decoded(NamedTuple):
    """What was decoded last of an utterance under way, and the partial that was said last."""

    revision: int
    decoded: str
    said: str


class _Memory:
    """What was decoded last of utterances under way, those whose turn was longest ago first; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._decoded: OrderedDict[_Key, _Decoded] = OrderedDict()

    def take(self, key: _Key) -> _Decoded | None:
        """Gives what is remembered, and forgets it."""
        with self._lock:
            return self._decoded.pop(key, None)

    def put(self, key: _Key, decoded: _Decoded) -> None:
        """Remembers this, in place of what is oldest where there is too much."""
        with self._lock:
            self._decoded[key] = decoded
            if len(self._decoded) > _MOST_REMEMBERED:
                self._decoded.popitem(last=False)

    def turns(self) -> dict[_Key, int]:
        """Gives the order of what is remembered."""
        with self._lock:
            return {key: turn for turn, key in enumerate(self._decoded)}


# By engine, and not in a DoFn: runners make those anew as they like.
_MEMORIES: WeakKeyDictionary[SpeechEngine, _Memory] = WeakKeyDictionary()


class Transcription:
    """The transcribing of one engine; thread-safe.

    Every final is made, but of partials only what there is time for: of each session the newest, those first who have
    waited longest. What is made is a function of the utterance's audio alone; what is remembered spares a decoding, and
    the same text twice.
    """

    def __init__(self, engine: SpeechEngine, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._clock = clock
        self._memory = _MEMORIES.setdefault(engine, _Memory())

    def transcribe(self, spoken: Sequence[SpokenUtterance]) -> list[list[Result]]:
        """Gives what is to be said of each, in order; nothing where a partial is left out."""
        begun_s = self._clock()
        said = self._finals(spoken)
        for place in self._by_turns(spoken):
            if self._clock() - begun_s < _PARTIALS_S:
                said[place] = self._partial(spoken[place])
        made_by = self._engine.made_by()
        return [
            [result for event in said.get(place, []) if (result := event_to_result(event, one.heard, made_by))]
            + one.then
            for place, one in enumerate(spoken)
        ]

    def _finals(self, spoken: Sequence[SpokenUtterance]) -> dict[int, list[Event]]:
        over = {place: one for place, one in enumerate(spoken) if one.utterance and one.is_over()}
        tasks = [(one.utterance, one.pcm) for one in over.values() if one.utterance]
        finals = self._engine.transcribe(tasks) if tasks else []
        for one in over.values():
            self._memory.take(_key(one))
        return {place: [final] for place, final in zip(over, finals, strict=True)}

    def _partial(self, spoken: SpokenUtterance) -> list[Event]:
        """Gives the partial of an utterance under way, if it says anything new."""
        if spoken.utterance is None:
            return []
        key, revision = _key(spoken), spoken.utterance.revision
        last = self._memory.take(key) or _Decoded(-1, "", "")
        before = last.decoded if last.revision == revision - 1 else None
        partial, decoded = self._engine.transcribe_so_far(spoken.utterance, spoken.pcm, before)
        self._memory.put(key, _Decoded(revision, decoded, partial.text))
        return [partial] if partial.text != last.said else []

    def _by_turns(self, spoken: Sequence[SpokenUtterance]) -> list[int]:
        """Gives the places of what is the last of its session and under way, the one whose turn it is first."""
        last = {one.heard.session: place for place, one in enumerate(spoken)}
        under_way = [place for place in last.values() if not spoken[place].is_over()]
        turns = self._memory.turns() if under_way else {}
        return sorted(under_way, key=lambda place: turns.get(_key(spoken[place]), -1))


def _key(spoken: SpokenUtterance) -> _Key:
    number = spoken.utterance.utterance if spoken.utterance else -1
    return spoken.heard.session, spoken.heard.incarnation, number
