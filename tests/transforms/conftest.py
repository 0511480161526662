"""A small engine that can be reckoned by hand, and chunks to feed it."""

import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from model_runtime.decode import encode_linear16
from model_runtime.devices import RouteConfig
from model_runtime.errors import AudioError, ConfigError, StateError
from model_runtime.recipe import EndpointConfig
from model_runtime.records import Enhanced, Event, Final, MadeBy, Partial
from model_runtime.session_settings import SessionSettings
from transforms.clip_inference import InferenceConfig
from transforms.part_file import FOLDER
from transforms.reading_config import ReadingConfig
from transforms.stream_records import Chunk
from transforms.subtitles import SubtitlesConfig
from transforms.work_order import WorkOrder
from transforms.write_audio import EnhancedConfig

NONE = SessionSettings()


class StandInState(msgspec.Struct, frozen=True, array_like=True):
    sample_rate_hz: int
    samples: int = 0
    checksum: int = 0
    # How many samples had come when the denoise stage was switched off or on.
    switches: tuple[int, ...] = ()

    def with_denoise(self, on: bool) -> "StandInState":
        return msgspec.structs.replace(self, switches=(*self.switches, self.samples))

    settings: SessionSettings = SessionSettings()


class StandInEngine:
    """Says a partial per 1600 samples and, at the end, a final of the samples' number and checksum; echoes audio.

    Where a session has settings of its own, the final names them.
    """

    defers = False

    def start(self, sample_rate_hz: int, settings: SessionSettings = NONE) -> StandInState:
        if not 8000 <= sample_rate_hz <= 192_000:
            raise AudioError(f"sample_rate_hz must be 8000..192000, got {sample_rate_hz}")
        try:
            settings.endpoint(EndpointConfig())
        except ValueError as error:
            raise ConfigError(str(error)) from error
        return StandInState(sample_rate_hz, settings=settings)

    def step(self, state: StandInState, samples: np.ndarray) -> tuple[StandInState, list[Event]]:
        before, after = state.samples, state.samples + len(samples)
        events: list[Event] = [Enhanced(before, samples.astype("<f4").tobytes())]
        for count in range(before // 1600 + 1, after // 1600 + 1):
            events.append(Partial(0, count - 1, f"{count}", 0, count * 1600))
        checksum = zlib.crc32(samples.astype("<f4").tobytes(), state.checksum)
        return msgspec.structs.replace(state, samples=after, checksum=checksum), events

    def finish(self, state: StandInState) -> tuple[StandInState, list[Event]]:
        text = f"{state.samples} {state.checksum:08x}"
        own = {name: value for name, value in msgspec.structs.asdict(state.settings).items() if value is not None}
        text += f" {own}" if own else ""
        return state, [Final(0, state.samples // 1600, text, (), 1.0, 0, state.samples)]

    def freeze(self, state: StandInState) -> bytes:
        return msgspec.msgpack.encode(state)

    def thaw(self, blob: bytes) -> StandInState:
        try:
            return msgspec.msgpack.decode(blob, type=StandInState)
        except msgspec.MsgspecError as error:
            raise StateError("damaged") from error

    def made_by(self) -> MadeBy:
        return MadeBy("stand-in:1", "cpu")


@pytest.fixture
def stand_in() -> StandInEngine:
    return StandInEngine()


@pytest.fixture
def noise() -> np.ndarray:
    """One second at 16 kHz that LINEAR16 carries exactly: float32 [16000]."""
    codes = np.random.default_rng(7).integers(-16_000, 16_000, 16_000)
    return (codes / 32768).astype(np.float32)


@pytest.fixture
def part(noise: np.ndarray) -> np.ndarray:
    """The samples of one chunk: float32 [1600]."""
    return noise[:1600]


@pytest.fixture
def make_chunk() -> Callable[..., Chunk]:
    """Gives chunks of 100 ms by their number; any field can be set."""

    def make(number: int = 0, samples: np.ndarray | bytes | None = None, **fields: object) -> Chunk:
        payload = encode_linear16(samples) if isinstance(samples, np.ndarray) else samples
        event_ms = fields.pop("event_ms", 1_000_000 + 100 * number)
        chunk = Chunk(
            session="s",
            sequence=number,
            encoding="LINEAR16",
            sample_rate_hz=16_000,
            channels=1,
            end_of_stream=False,
            payload=payload,
            event_ms=event_ms,
            stream_ms=event_ms,
            topic="audio",
            partition=0,
            offset=500 + number,
            headers=[("sequence", b"%d" % number)],
        )
        return chunk._replace(**fields)

    return make


@pytest.fixture
def final_of() -> Callable[[np.ndarray], str]:
    """Gives the text of the stand-in's final for these samples."""
    return lambda samples: f"{len(samples)} {zlib.crc32(samples.astype('<f4').tobytes()):08x}"


@pytest.fixture
def order(tmp_path: Path) -> WorkOrder:
    """Work for the accurate answer, in the folder of the test."""
    (tmp_path / FOLDER).mkdir()
    return WorkOrder(
        output=str(tmp_path),
        recipe="batch",
        route=RouteConfig(),
        reading=ReadingConfig(),
        inference=InferenceConfig(),
        answer="accurate",
        enhanced=EnhancedConfig(),
        subtitles=SubtitlesConfig(("srt",)),
        fingerprint="f",
        journal=str(tmp_path / "journal"),
        force=False,
        max_errors=1000,
    )
