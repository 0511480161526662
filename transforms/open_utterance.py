"""OpenUtterance: what can still be said of an utterance under way when its session's state can no longer be read."""

import msgspec
from msgspec.structs import replace

from model_runtime.records import Event, Final, MadeBy, Partial, SpeechBegin, SpeechEnd, Utterance, UtteranceAudio
from transforms.result import Heard, Result, event_to_result

_SAMPLE_BYTES = 2


class OpenUtterance(msgspec.Struct, frozen=True, array_like=True):
    """An utterance that has begun: its newest partial, by which models, and how much audio of it is kept elsewhere.

    Positions count samples of the session's input; revision is that of the next partial or of the final.
    """

    utterance: int
    start_samples: int
    end_samples: int
    model: str
    device: str
    revision: int = 0
    text: str = ""
    # Of a deferring engine: bytes of LINEAR16 at the models' rate.
    audio_bytes: int = 0

    def last_words(self, heard: Heard) -> list[Result]:
        """Gives what ends the utterance: its newest partial as the final, marked with the reason `state`."""
        events: list[Event] = [SpeechEnd(self.utterance, self.start_samples, self.end_samples, "state")]
        if self.revision:
            start, end = self.start_samples, self.end_samples
            events.append(Final(self.utterance, self.revision, self.text, (), 0.0, start, end))
        made_by = MadeBy(self.model, self.device)
        results = [event_to_result(event, heard, made_by) for event in events]
        return [result._replace(reason="state") for result in results if result is not None]

    def to_transcribe(self, session_rate_hz: int, models_rate_hz: int) -> Utterance:
        """Gives the utterance as far as its audio has been kept, for models that hear it whole."""
        start = self.start_samples * models_rate_hz // session_rate_hz
        end = start + self.audio_bytes // _SAMPLE_BYTES
        return Utterance(self.utterance, self.revision, start, end, session_rate_hz)


def follow(open_: OpenUtterance | None, event: Event, made_by: MadeBy) -> OpenUtterance | None:
    """Gives the utterance that is under way after an event, if one is."""
    match event:
        case SpeechBegin(utterance, start):
            return OpenUtterance(utterance, start, start, *made_by)
        case Partial(utterance, revision, text, start, end):
            return OpenUtterance(utterance, start, end, *made_by, revision=revision + 1, text=text)
        case UtteranceAudio(_, pcm) if open_ is not None:
            return replace(open_, audio_bytes=open_.audio_bytes + len(pcm))
        case SpeechEnd() | Final() | Utterance():
            return None
    return open_
