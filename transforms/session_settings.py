"""What a sender may ask for its own session, in the headers of its first chunk (docs/streaming.md)."""

from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from model_runtime.engine import SpeechEngine
from model_runtime.errors import AudioError, ConfigError
from model_runtime.session_settings import SessionSettings
from model_runtime.session_state import SessionState
from service.wire import ENHANCED, decode_flag, decode_number
from transforms.stream_records import Chunk


class Wishes(msgspec.Struct, frozen=True, array_like=True):
    """Part of a session's memory: the rules of its own, and whether its clean audio is wanted."""

    settings: SessionSettings = SessionSettings()
    enhanced: bool = True


class Start(NamedTuple):
    """How a session starts: what is granted, the engine's state, and what is wrong with the rest."""

    wishes: Wishes
    state: SessionState
    problems: list[str]


def start_with(engine: SpeechEngine, sample_rate_hz: int, wishes: Wishes) -> Start:
    """Starts a session with what was granted before; all of it is dropped where this engine cannot grant it any more.

    Raises:
        AudioError: the rate is out of bounds.
    """
    try:
        return Start(wishes, engine.start(sample_rate_hz, wishes.settings), [])
    except ConfigError as error:
        return Start(Wishes(), engine.start(sample_rate_hz), [str(error)])


def start_as_asked(engine: SpeechEngine, sample_rate_hz: int, before: Wishes, chunk: Chunk, enhanced: bool) -> Start:
    """Starts a session as a chunk's headers ask for it; what they do not name, or wrongly, stays as it was before.

    Args:
        enhanced: whether the job writes clean audio at all.
    """
    given = {name: value for name, value in chunk.headers if value}
    start = start_with(engine, sample_rate_hz, before)
    for name in SessionSettings.__struct_fields__:
        if name not in given:
            continue
        try:
            settings = replace(start.wishes.settings, **{name: decode_number(given, name, 0)})
            state = engine.start(sample_rate_hz, settings)
        except (AudioError, ConfigError) as error:
            start.problems.append(str(error))
        else:
            start = Start(replace(start.wishes, settings=settings), state, start.problems)
    try:
        wanted = decode_flag(given, ENHANCED, start.wishes.enhanced)
    except AudioError as error:
        start.problems.append(str(error))
        return start
    if ENHANCED in given and wanted and not enhanced:
        start.problems.append("header enhanced must be 0 where the job writes no clean audio, got 1")
    return start._replace(wishes=replace(start.wishes, enhanced=wanted))
