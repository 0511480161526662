"""What the events of a clip add up to: texts, words and speech in its time, and the clean audio in its file."""

from pathlib import Path

import numpy as np
import soundfile

from model_runtime import Enhanced, Event, Final, MadeBy, Partial, SpeechBegin, SpeechEnd, Word
from transforms.heard_clip import HeardClip
from transforms.records import ClipRow, Segment
from transforms.write_audio import CleanFolder, CleanMemory, EnhancedConfig

MADE_BY = MadeBy("stand-in:1:float32", "cpu")
ROW = ClipRow(0, 1, "a.wav", "a.wav", b"{}")


def test_result_joins_the_finals_and_gives_times_in_ms_of_the_clip() -> None:
    words = (Word("a", 10, 20, 0.5), Word("b", 900, 990, 0.75))
    events: list[Event] = [
        SpeechBegin(0, 80),
        Partial(0, 0, "x", 80, 100),
        SpeechEnd(0, 80, 4000, "silence"),
        Final(0, 1, "a", words[:1], 0.5, 80, 4000),
        Final(1, 1, "", (), 0.0, 5000, 5000),
        SpeechEnd(2, 4804, 8000, "stream"),
        Final(2, 1, "b", words[1:], 0.75, 4804, 8000),
    ]
    heard = HeardClip(ROW, 8000)
    for event in events:
        heard.take([event])
    result = heard.result(8000, MADE_BY)
    assert (result.pred_text, result.words) == ("a b", list(words))
    assert result.segments == [Segment(10, 500), Segment(601, 1000)]
    assert (result.duration_s, result.sample_rate_hz, result.enhanced_path) == (1.0, 8000, "")


def _folder(path: Path) -> CleanFolder:
    return CleanFolder(str(path), EnhancedConfig(True))


def test_clean_audio_goes_to_its_file_as_it_comes(tmp_path: Path) -> None:
    heard = HeardClip(ROW, 8000, _folder(tmp_path))
    for values in ([0.5, -1.0], [], [2.0]):
        heard.take([Enhanced(0, np.array(values, "<f4").tobytes())])
    result = heard.result(3, MADE_BY)
    assert soundfile.read(tmp_path / result.enhanced_path, dtype="int16")[0].tolist() == [16384, -32768, 32767]


def test_clean_audio_may_be_kept_in_memory() -> None:
    heard = HeardClip(ROW, 8000, CleanMemory())
    for values in ([0.5, -1.0], [2.0]):
        heard.take([Enhanced(0, np.array(values, "<f4").tobytes())])
    result = heard.result(3, MADE_BY)
    assert (np.frombuffer(result.enhanced or b"", "<i2").tolist(), result.enhanced_path) == ([16384, -32768, 32767], "")


def test_clip_without_a_sample_has_a_file_without_a_sample(tmp_path: Path) -> None:
    result = HeardClip(ROW, 8000, _folder(tmp_path)).result(0, MADE_BY)
    assert len(soundfile.read(tmp_path / result.enhanced_path)[0]) == 0


def test_clip_that_is_discarded_leaves_no_file_whatever_comes_yet(tmp_path: Path) -> None:
    heard = HeardClip(ROW, 8000, _folder(tmp_path))
    heard.take([Enhanced(0, np.zeros(9, "<f4").tobytes())])
    heard.discard()
    heard.take([Enhanced(9, np.zeros(9, "<f4").tobytes())])
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
