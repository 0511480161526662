"""Field cases A01, A03, A04, A06, A07, A08 and S06: audio files as recorders, telephones and servers write them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_runtime.decode import decode_file
from model_runtime.errors import AudioError
from model_runtime.resample import Resampler

Row = dict[str, Any]
EXACT = [
    "ext_pcm16",
    "ext_float32",
    "ext_24in32",
    "list_before_data",
    "junk_first_fmt18_fact",
    "odd_chunk_padded",
    "pcm24",
    "pcm32",
    "float32",
    "float64",
]


@pytest.fixture(scope="module")
def reference(cases: Path) -> np.ndarray:
    return decode_file(cases / "wav" / "ref_pcm16.wav").samples


def _refusal(path: Path) -> str:
    with pytest.raises(AudioError) as caught:
        decode_file(path)
    return str(caught.value)


def _answer(row: Row) -> tuple[str, Any, Any]:
    return row["pred_text"], row["words"], row["segments"]


def _word_errors(heard: list[str], said: list[str]) -> int:
    """Levenshtein distance in words."""
    errors = list(range(len(said) + 1))
    for row, word in enumerate(heard, 1):
        above, errors[0] = errors[0], row
        for column, right in enumerate(said, 1):
            above, errors[column] = (
                errors[column],
                min(above + (word != right), errors[column] + 1, errors[column - 1] + 1),
            )
    return errors[-1]


def test_every_file_has_the_length_and_rate_that_the_oracle_says(cases: Path, oracle: dict[str, Row]) -> None:
    checked = 0
    for name, right in oracle.items():
        if not name.startswith("wav/") or right["expect"] != "decode" or "bad_at" in right:
            continue
        audio = decode_file(cases / name)
        assert len(audio.samples) == right["n"], name
        assert audio.sample_rate_hz == right.get("sr", 16000), name
        checked += 1
    assert checked == 25


@pytest.mark.parametrize("name", EXACT)
def test_other_codings_of_the_same_sound_give_the_same_samples(cases: Path, reference: np.ndarray, name: str) -> None:
    np.testing.assert_array_equal(decode_file(cases / "wav" / f"{name}.wav").samples, reference)


@pytest.mark.parametrize("name", ["rf64", "rifx", "flac_named"])
def test_other_containers_under_the_name_wav_are_decoded_exactly(cases: Path, reference: np.ndarray, name: str) -> None:
    np.testing.assert_array_equal(decode_file(cases / "other" / f"{name}.wav").samples, reference)


@pytest.mark.parametrize("name", EXACT)
def test_other_codings_of_the_same_sound_have_the_same_answer(wav_rows: dict[str, Row], name: str) -> None:
    assert _answer(wav_rows[f"{name}.wav"]) == _answer(wav_rows["ref_pcm16.wav"])


def test_odd_sized_data_chunk_is_read_to_its_last_whole_sample(cases: Path, reference: np.ndarray) -> None:
    samples = decode_file(cases / "wav" / "pcm24_odd_data_then_list.wav").samples
    np.testing.assert_array_equal(samples, reference[:46217])


def test_chunk_without_its_pad_byte_is_refused_and_never_read_shifted(cases: Path) -> None:
    assert "No 'data' chunk marker" in _refusal(cases / "wav" / "odd_chunk_unpadded.wav")


def test_unknown_sub_format_is_named(cases: Path) -> None:
    assert "unknown sub-format 00ff0001-0000-0010-8000-00aa00389b71" in _refusal(cases / "wav" / "ext_unknown_guid.wav")


def test_8_bit_samples_are_unsigned(cases: Path, reference: np.ndarray) -> None:
    np.testing.assert_allclose(decode_file(cases / "wav" / "pcm_u8.wav").samples, reference, atol=0.01)


def test_20_bits_in_24_are_scaled_as_24(cases: Path, reference: np.ndarray) -> None:
    np.testing.assert_allclose(decode_file(cases / "wav" / "pcm20_in_24.wav").samples, reference, atol=2e-5)


def test_floats_over_one_are_clipped_and_keep_their_sign(cases: Path, reference: np.ndarray) -> None:
    samples = decode_file(cases / "wav" / "float32_over_1.wav").samples
    np.testing.assert_allclose(samples, np.clip(4 * reference, -1, 1), atol=1e-3)
    assert np.abs(samples).max() == 1.0


@pytest.mark.parametrize("name", ["alaw_8k", "mulaw_8k"])
def test_telephone_codings_are_decoded_at_their_level(cases: Path, oracle: dict[str, Row], name: str) -> None:
    audio = decode_file(cases / "wav" / f"{name}.wav")
    right = oracle[f"wav/{name}.wav"]
    assert (audio.sample_rate_hz, len(audio.samples)) == (8000, 23109)
    assert float(np.abs(audio.samples).max()) == pytest.approx(right["peak"], abs=right["tol"])


@pytest.mark.parametrize(("name", "rate_hz"), [("mono_48k", 48000), ("mono_8k", 8000)])
def test_other_rates_last_as_long_as_they_did_and_are_heard_alike(
    wav_rows: dict[str, Row], cases: Path, name: str, rate_hz: int
) -> None:
    row, reference = wav_rows[f"{name}.wav"], wav_rows["ref_pcm16.wav"]
    assert row["duration"] == pytest.approx(2.888625, abs=0.0005)
    assert _word_errors(row["pred_text"].split(), reference["pred_text"].split()) <= 1
    assert row["segments"][-1]["end_ms"] == pytest.approx(reference["segments"][-1]["end_ms"], abs=60)
    resampled = Resampler(rate_hz, 16000).run(decode_file(cases / "wav" / f"{name}.wav").samples)
    assert len(resampled) == 46218


def test_speech_on_one_channel_is_heard_at_half_its_level(cases: Path, reference: np.ndarray) -> None:
    np.testing.assert_array_equal(decode_file(cases / "wav" / "stereo_left_only.wav").samples, reference / 2)


def test_antiphase_channels_are_refused_by_name(wav_rows: dict[str, Row]) -> None:
    assert "2 channels cancel each other (antiphase)" in wav_rows["stereo_antiphase.wav"]["error"]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("error_page", "it is an HTML page"),
        ("lfs_pointer", "it is a Git LFS pointer"),
        ("zero_bytes", "it is empty (0 bytes)"),
        ("mp3_named", "it is an MP3 file"),
    ],
)
def test_file_that_is_no_audio_is_a_bad_row_with_its_path_and_what_it_is(
    wav_rows: dict[str, Row], cases: Path, name: str, what: str
) -> None:
    row = wav_rows[f"{name}.wav"]
    assert row["error"].startswith(f"{cases}/other/{name}.wav: ")
    assert what in row["error"]
    assert (row["error_class"], row["pred_text"]) == ("AudioError", "")


def test_bad_files_cost_nobody_else_his_answer(wav_rows: dict[str, Row]) -> None:
    bad = {name for name, row in wav_rows.items() if row["error"]}
    assert bad == {
        "error_page.wav",
        "lfs_pointer.wav",
        "zero_bytes.wav",
        "mp3_named.wav",
        "ext_unknown_guid.wav",
        "odd_chunk_unpadded.wav",
        "nonfinite_float32.wav",
        "stereo_antiphase.wav",
    }
    assert len(wav_rows) == 42


@pytest.mark.parametrize("samples", [0, 1, 160, 300, 368, 511, 512])
def test_clips_below_a_window_have_no_text_and_no_segments(wav_rows: dict[str, Row], samples: int) -> None:
    name = {0: "no_samples", 1: "one_sample"}.get(samples, f"short_{samples}")
    row = wav_rows[f"{name}.wav"]
    assert (row["error"], row["pred_text"], row["segments"]) == ("", "", [])
    assert row["duration"] == round(samples / 16000, 6)


def test_sample_that_is_not_finite_is_refused_by_index_and_value(wav_rows: dict[str, Row]) -> None:
    assert "sample 1000 of 46218 is nan (4 such samples)" in wav_rows["nonfinite_float32.wav"]["error"]


def test_constant_sound_is_no_speech(wav_rows: dict[str, Row]) -> None:
    assert _answer(wav_rows["dc_offset.wav"]) == ("", [], [])


def test_speech_between_silences_is_found_where_it_is(wav_rows: dict[str, Row]) -> None:
    segments = wav_rows["sil_speech_sil.wav"]["segments"]
    assert segments[0]["start_ms"] == pytest.approx(1000, abs=350)
    assert segments[-1]["end_ms"] == pytest.approx(3889, abs=350)
