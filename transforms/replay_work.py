"""The work on one part of a replayed range, without Beam: its finals and dead letters in one file of finished rows."""

import hashlib
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec

from model_runtime.devices import RouteConfig
from model_runtime.engine import SpeechEngine
from service.wire import AudioDefaults
from transforms.dead_letter import DeadLetter
from transforms.kafka_input_config import KafkaInputConfig
from transforms.kafka_range import Span
from transforms.part_file import FOLDER, FinishedRow, part_path, read_header, write_part
from transforms.read_kafka_range import RangeReader
from transforms.records import ClipResult, PartDone, Segment
from transforms.replay import Replay, ReplayedFinal
from transforms.result_lines import to_line
from transforms.run_journal import Done, RunJournal
from transforms.session_config import OutputConfig, SessionConfig
from transforms.session_logic import SessionLogic
from transforms.tally import tally_lines

_KEY_BYTES = 16
_ROWS_PER_ENTRY = 50
# Where a row stands: partition, offset, utterance.
_Place = tuple[int, int, int]


class ReplayOrder(msgspec.Struct, frozen=True):
    """All that workers must know of a replay.

    found_ms: when the spans were looked up; fingerprint: of work_fingerprint; journal: path of the run's journal;
    force: do all parts anew.
    """

    output: str
    topic: str
    spans: list[Span]
    found_ms: int
    recipe: str
    route: RouteConfig
    kafka: KafkaInputConfig
    audio: AudioDefaults
    session: SessionConfig
    fingerprint: str
    journal: str
    force: bool

    @property
    def parts_folder(self) -> Path:
        """Where part files lie."""
        return Path(self.output) / FOLDER


class ReplayWork:
    """Does parts of a replay."""

    def __init__(self, order: ReplayOrder, engine: SpeechEngine) -> None:
        self._order = order
        self._logic = SessionLogic(engine, order.session, OutputConfig(partials=False, segments=False, enhanced=False))
        self._journal = RunJournal(order.journal)

    def do(self, number: int) -> PartDone:
        """Gives the part when its rows are on the disk; one that an earlier run has finished is taken over.

        Raises:
            KafkaError: the broker has stopped answering.
        """
        name = self._name(number)
        folder = self._order.parts_folder
        if part_path(folder, name).exists() and not self._order.force:
            tally = read_header(folder, name)[0].tally
            self._journal.add(Done(tally, tally.rows, number=number, part=name))
            return PartDone(number, name, tally.rows)
        order = self._order
        replay = Replay(
            self._logic, order.audio, order.spans, order.kafka.allowed_disorder_ms, (number, order.kafka.parts)
        )
        reader = RangeReader(order.kafka.source(), order.topic, order.spans, order.found_ms)
        rows = [row for _, row in sorted(self._rows(replay, reader))]
        # The rest of a session that still goes on will be there another time.
        name = uuid.uuid4().hex if replay.unfinished else name
        write_part(folder, name, rows)
        self._journal.add(Done(number=number, part=name))
        return PartDone(number, name, len(rows))

    def _rows(self, replay: Replay, reader: RangeReader) -> Iterator[tuple[_Place, FinishedRow]]:
        lines: list[bytes] = []
        for said in replay.play(reader, self._order.found_ms):
            result = _letter_row(said) if isinstance(said, DeadLetter) else _final_row(said, self._order.topic)
            key = self._digest([result.source_path, result.row, result.columns])
            utterance = -1 if isinstance(said, DeadLetter) else said.final.utterance
            lines.append(to_line(result, False))
            yield (said.partition, said.offset, utterance), FinishedRow(key, lines[-1])
            if len(lines) == _ROWS_PER_ENTRY:
                self._note(lines)
                lines = []
        self._note(lines)

    def _note(self, lines: list[bytes]) -> None:
        tally = tally_lines(lines)
        self._journal.add(Done(tally, audio_ms=tally.audio_ms))

    def _name(self, number: int) -> str:
        """The same for the same work, so that a later run finds it."""
        spans = [(span.partition, span.first, span.last) for span in self._order.spans]
        return self._digest([self._order.topic, spans, number, self._order.kafka.parts])

    def _digest(self, values: list[object]) -> str:
        text = msgspec.json.encode([self._order.fingerprint, *values])
        return hashlib.blake2b(text, digest_size=_KEY_BYTES).hexdigest()


def _final_row(said: ReplayedFinal, topic: str) -> ClipResult:
    final = said.final
    columns = {
        "result_id": final.result_id,
        "session": final.session,
        "utterance": final.utterance,
        "revision": final.revision,
        "gaps": [gap._asdict() for gap in final.gaps],
        "duplicates": final.duplicates,
    }
    return ClipResult(
        source=said.partition,
        row=said.offset,
        source_path=f"kafka:{topic}/{said.partition}",
        columns=msgspec.json.encode(columns),
        pred_text=final.text,
        words=final.words,
        segments=[Segment(final.start_ms, final.end_ms)],
        duration_s=(final.end_ms - final.start_ms) / 1000,
        model=final.model,
        device=final.device,
        error="",
        error_class="",
    )


def _letter_row(letter: DeadLetter) -> ClipResult:
    return ClipResult(
        source=letter.partition,
        row=letter.offset,
        source_path=f"kafka:{letter.topic}/{letter.partition}",
        columns=msgspec.json.encode({"session": letter.key, "stage": letter.stage}),
        pred_text="",
        words=[],
        segments=[],
        duration_s=None,
        model="",
        device="",
        error=letter.message,
        error_class=letter.error_class,
    )
