"""KeepSessions: a row of the archive for each session, and its audio as a file, once all of it has come."""

from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam
import msgspec
from apache_beam.coders import BytesCoder
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.userstate import (
    BagRuntimeState,
    BagStateSpec,
    ReadModifyWriteRuntimeState,
    ReadModifyWriteStateSpec,
    RuntimeTimer,
    TimerSpec,
    on_timer,
)
from apache_beam.utils.timestamp import Timestamp

from transforms.archive_config import ArchiveConfig
from transforms.archive_file import ArchiveRow
from transforms.archive_rows import session_row
from transforms.record_coder import RecordCoder
from transforms.result import Result
from transforms.session_recording import BLOCK_SAMPLES, cut_blocks, drop_spool, spool_blocks, write_recording
from transforms.stream_records import SessionAudio, SessionPart

_HOUR_MS = 3_600_000


class Kept(msgspec.Struct, array_like=True):
    """What is known of a session besides its results and its audio: how much of the audio there is.

    blocks: that lie in files; pending_bytes: behind them.
    """

    blocks: int = 0
    pending_bytes: int = 0


class KeepSessions(beam.PTransform):
    """Takes ((life, SessionPart) of results, the same of audio); gives (stream time in ms, ArchiveRow) of each session.

    The row comes when the watermark has passed the session's end: then its finals and its audio have come too, by
    whatever ways. In memory there are a session's finals, and of its audio at most a block and a turn's share.
    """

    def __init__(self, config: ArchiveConfig, max_session_ms: int) -> None:
        """max_session_ms: what has no end an hour after so much stream time is forgotten."""
        super().__init__()
        self._fn = _KeepSessionFn(config, max_session_ms + _HOUR_MS)

    def expand(self, parts: tuple[beam.PCollection, ...]) -> beam.PCollection:
        keep = beam.ParDo(self._fn).with_output_types(tuple[int, ArchiveRow])
        return parts | "Together" >> beam.Flatten() | "Keep" >> keep


class _KeepSessionFn(beam.DoFn):
    KEPT = ReadModifyWriteStateSpec("kept", BytesCoder())
    RESULTS = BagStateSpec("results", RecordCoder(Result))
    # Audio behind the last block.
    AUDIO = BagStateSpec("audio", RecordCoder(SessionAudio))
    # The end of the session, or the time when it is forgotten.
    END = TimerSpec("end", TimeDomain.WATERMARK)

    def __init__(self, config: ArchiveConfig, forget_ms: int) -> None:
        super().__init__()
        self._config = config
        self._folder = Path(config.folder)
        self._forget_ms = forget_ms

    def process(
        self,
        element: tuple[str, SessionPart],
        time: Timestamp = beam.DoFn.TimestampParam,
        kept: ReadModifyWriteRuntimeState = beam.DoFn.StateParam(KEPT),  # noqa: B008
        results: BagRuntimeState = beam.DoFn.StateParam(RESULTS),  # noqa: B008
        audio: BagRuntimeState = beam.DoFn.StateParam(AUDIO),  # noqa: B008
        end: RuntimeTimer = beam.DoFn.TimerParam(END),  # noqa: B008
    ) -> None:
        life, part = element
        data = kept.read()
        state = Kept() if data is None else _decoder.decode(data)
        if data is None:
            end.set(_later(time, self._forget_ms))
        if part.audio is not None:
            audio.add(part.audio)
            state.pending_bytes += len(part.audio.pcm)
            if state.pending_bytes >= 2 * BLOCK_SAMPLES:
                self._spool(life, state, audio)
        if part.result is not None:
            results.add(part.result)
            if part.result.type == "session_end":
                end.set(_later(time, 1))
        kept.write(msgspec.msgpack.encode(state))

    @on_timer(END)
    def on_end(
        self,
        life: str = beam.DoFn.KeyParam,
        fired: Timestamp = beam.DoFn.TimestampParam,
        kept: ReadModifyWriteRuntimeState = beam.DoFn.StateParam(KEPT),  # noqa: B008
        results: BagRuntimeState = beam.DoFn.StateParam(RESULTS),  # noqa: B008
        audio: BagRuntimeState = beam.DoFn.StateParam(AUDIO),  # noqa: B008
    ) -> Iterator[tuple[int, ArchiveRow]]:
        data = kept.read()
        said = list(results.read())
        ends = [result for result in said if result.type == "session_end"]
        if data is not None and ends:
            stream_ms = fired.micros // 1000 - 1
            recording = self._record(_decoder.decode(data), list(audio.read()), ends[0].event_ms or stream_ms)
            finals = [result for result in said if result.type == "final"]
            yield stream_ms, session_row(ends[0], finals, recording, stream_ms, self._config)
        else:
            drop_spool(self._folder, life)
        for state in (kept, results, audio):
            state.clear()

    def _spool(self, life: str, state: Kept, audio: BagRuntimeState) -> None:
        blocks, rest = cut_blocks(list(audio.read()), state.blocks)
        spool_blocks(self._folder, life, state.blocks, blocks)
        state.blocks += len(blocks)
        state.pending_bytes = len(rest.pcm)
        audio.clear()
        audio.add(rest)

    def _record(self, state: Kept, pieces: list[SessionAudio], event_ms: int) -> str:
        """Writes the session's audio, and says where; "" where none is to be kept, or there was none."""
        if self._config.audio == "none" or not pieces:
            return ""
        _, rest = cut_blocks(pieces, state.blocks)
        return write_recording(self._folder, self._config.audio, event_ms, state.blocks, rest)


def _later(time: Timestamp, by_ms: int) -> Timestamp:
    return Timestamp(micros=time.micros + by_ms * 1000)


_decoder = msgspec.msgpack.Decoder(Kept)
