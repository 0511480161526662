"""What is heard in a clip, taken as it comes: text, words and speech are kept, clean audio goes to its file."""

from collections.abc import Sequence

from model_runtime.errors import SpeechError
from model_runtime.records import Enhanced, Event, Final, MadeBy, SpeechEnd, Word
from transforms.milliseconds import samples_to_ms
from transforms.records import ClipResult, ClipRow, Segment
from transforms.write_audio import Clean, CleanFolder, CleanMemory, CleanSink


class HeardClip:
    """Grows with what is said in a clip, and not with its length."""

    def __init__(self, row: ClipRow, sample_rate_hz: int, place: CleanFolder | CleanMemory | None = None) -> None:
        """place: where its clean audio goes; None: nowhere."""
        self._row = row
        self._rate_hz = sample_rate_hz
        self._place = place
        self._sink: CleanSink | None = None
        self._texts: list[str] = []
        self._words: list[Word] = []
        self._segments: list[Segment] = []

    def take(self, events: Sequence[Event]) -> None:
        """Takes the next events."""
        for event in events:
            match event:
                case Final():
                    self._texts += [event.text] if event.text else []
                    self._words += [Word(*word) for word in event.words]
                case SpeechEnd():
                    ends = (samples_to_ms(at, self._rate_hz) for at in (event.start_samples, event.end_samples))
                    self._segments.append(Segment(*ends))
                case Enhanced() if self._place is not None:
                    self._clean(self._place).write(event.samples())

    def result(self, samples: int, made_by: MadeBy) -> ClipResult:
        """Gives the answer to a clip that has ended after so many samples; its clean audio then is in its place."""
        if self._place is not None and not samples:
            self._clean(self._place)
        clean = self._sink.keep() if self._sink else Clean(None, "")
        return ClipResult(
            source=self._row.source,
            row=self._row.row,
            source_path=self._row.source_path,
            columns=self._row.columns,
            pred_text=" ".join(self._texts),
            words=self._words,
            segments=self._segments,
            duration_s=round(samples / self._rate_hz, 6),
            model=made_by.model,
            device=made_by.device,
            error="",
            error_class="",
            sample_rate_hz=self._rate_hz,
            enhanced=clean.pcm,
            enhanced_path=clean.path,
            piece=self._row.piece,
        )

    def discard(self) -> None:
        """Leaves no file, whatever comes yet."""
        if self._sink is not None:
            self._sink.discard()
        self._place = self._sink = None

    def _clean(self, place: CleanFolder | CleanMemory) -> CleanSink:
        if self._sink is None:
            self._sink = place.open(self._row, self._rate_hz)
        return self._sink


def error_result(row: ClipRow, error: SpeechError, made_by: MadeBy, retriable: bool) -> ClipResult:
    """Gives the result of a row that cannot be used: its columns and the reason.

    Args:
        retriable: whether the same row may succeed another time.
    """
    return ClipResult(
        source=row.source,
        row=row.row,
        source_path=row.source_path,
        columns=row.columns,
        pred_text="",
        words=[],
        segments=[],
        duration_s=None,
        model=made_by.model,
        device=made_by.device,
        error=str(error),
        error_class=type(error).__name__,
        error_retriable=retriable,
        piece=row.piece,
    )
