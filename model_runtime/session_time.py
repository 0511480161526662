"""From positions in the models' samples to positions in those of the session's own rate."""

from typing import NamedTuple

from model_runtime.records import Event, Final, Partial, SpeechBegin, SpeechEnd, SpeechResumed, TentativeEnd, Utterance


class SessionTime(NamedTuple):
    """Two rates, of the models and of the session's audio."""

    models_hz: int
    session_hz: int

    def of(self, event: Event) -> Event:
        """Gives an event that stands in the models' time in the session's."""
        match event:
            case SpeechBegin():
                return event._replace(start_samples=self.position(event.start_samples))
            case SpeechResumed():
                return event._replace(position_samples=self.position(event.position_samples))
            case SpeechEnd() | TentativeEnd() | Partial() | Final():
                start, end = self.position(event.start_samples), self.position(event.end_samples)
                return event._replace(start_samples=start, end_samples=end)
            case Utterance():
                return event._replace(sample_rate_hz=self.session_hz)
        return event

    def position(self, position: int) -> int:
        """Gives the session's sample at or before a position in the models' samples: exact, so nothing drifts."""
        return position * self.session_hz // self.models_hz
