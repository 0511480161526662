"""Files and raw samples into float32, and what is said about bytes that are no audio."""

import io
from pathlib import Path

import numpy as np
import pytest
import soundfile

from model_runtime.audio_sniff import describe_bytes
from model_runtime.decode import decode_blocks, decode_bytes, decode_file, decode_pcm, encode_linear16
from model_runtime.errors import AudioError

RAMP = (np.arange(-800, 800, dtype=np.int16) * 20).astype(np.int16)


def _file_bytes(samples: np.ndarray, rate_hz: int = 16000, container: str = "WAV") -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate_hz, format=container)
    return buffer.getvalue()


@pytest.mark.parametrize("container", ["WAV", "FLAC", "AIFF"])
def test_lossless_files_give_the_samples_scaled_by_32768(container: str) -> None:
    audio = decode_bytes(_file_bytes(RAMP, container=container), "clip")
    assert audio.sample_rate_hz == 16000
    assert audio.samples.tolist() == (RAMP / 32768).astype(np.float32).tolist()


@pytest.mark.parametrize("container", ["OGG", "MP3"])
def test_lossy_files_give_the_tone_they_hold(container: str) -> None:
    tone = 0.5 * np.sin(2 * np.pi * 440 * np.arange(16000) / 16000)
    samples = decode_bytes(_file_bytes(tone, container=container), "clip").samples[2000:14000]
    assert int(np.argmax(np.abs(np.fft.rfft(samples)))) == 440 * 12000 // 16000
    assert np.sqrt(np.mean(samples**2)) == pytest.approx(0.5 / np.sqrt(2), abs=0.01)


def test_slice_is_cut_by_samples_of_the_file_rate(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(_file_bytes(RAMP))
    part = decode_file(tmp_path / "a.wav", start_s=0.05, duration_s=0.01)
    assert part.samples.tolist() == (RAMP[800:960] / 32768).tolist()


def test_duration_beyond_the_end_gives_what_there_is() -> None:
    assert len(decode_bytes(_file_bytes(RAMP), "clip", start_s=0.09, duration_s=5.0).samples) == 160


def test_offset_beyond_the_end_is_refused() -> None:
    with pytest.raises(AudioError, match=r"clip: offset must lie within the audio, got 0.1 s in 0.100 s"):
        decode_bytes(_file_bytes(RAMP), "clip", start_s=0.1)


@pytest.mark.parametrize(("start_s", "duration_s"), [(-1.0, None), (float("nan"), None), (0.0, -0.1)])
def test_negative_offset_or_duration_is_refused(start_s: float, duration_s: float | None) -> None:
    with pytest.raises(AudioError, match="must be >= 0 s"):
        decode_bytes(_file_bytes(RAMP), "clip", start_s, duration_s)


def test_rate_of_a_file_outside_the_bounds_is_named() -> None:
    with pytest.raises(AudioError, match=r"clip: sample_rate_hz must be 8000..192000, got 4000"):
        decode_bytes(_file_bytes(RAMP, 4000), "clip")


@pytest.mark.parametrize("name", ["a.raw", "a.mp3", "a", "ü [1].txt"])
@pytest.mark.parametrize("container", ["WAV", "OGG", "MP3", "FLAC"])
def test_name_of_a_file_does_not_matter(tmp_path: Path, name: str, container: str) -> None:
    data = _file_bytes(RAMP, container=container)
    (tmp_path / name).write_bytes(data)
    audio = decode_file(tmp_path / name)
    assert audio.samples.tobytes() == decode_bytes(data, "clip").samples.tobytes()


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(AudioError, match=r"gone.wav: cannot be read: No such file"):
        decode_file(tmp_path / "gone.wav")


def test_file_cut_in_its_header_is_an_audio_error() -> None:
    with pytest.raises(AudioError, match="clip: not decodable"):
        decode_bytes(_file_bytes(RAMP)[:30], "clip")


def test_file_cut_in_its_data_gives_the_samples_there_are() -> None:
    assert len(decode_bytes(_file_bytes(RAMP)[: 44 + 200], "clip").samples) == 100


def test_data_size_of_a_piped_wav_does_not_matter() -> None:
    data = bytearray(_file_bytes(RAMP))
    data[40:44] = b"\xff\xff\xff\xff"
    assert len(decode_bytes(bytes(data), "clip").samples) == 1600


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "empty (0 bytes)"),
        (b"\n<HTML><body>", "an HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "a Git LFS pointer (the file itself was never fetched)"),
        (b'{"error": 1}', "JSON text"),
        (b"Not found", "text ('Not found')"),
        (b"PK\x03\x04\x14\0", "a ZIP archive"),
        (b"\0\0\0\x20ftypM4A ", "an MP4 or M4A file"),
        (b"\0" * 64, "nothing but zero bytes"),
        (b"\x8f\x01\x02\x03", "of an unknown kind (first bytes 8f 01 02 03)"),
        (b"RIFF\0\0\0\0AVI ", "a RIFF file of type b'AVI ', not WAVE"),
    ],
)
def test_bytes_that_are_no_audio_are_described(data: bytes, text: str) -> None:
    assert describe_bytes(data) == text


@pytest.mark.parametrize(("encoding", "subtype"), [("MULAW", "ULAW"), ("ALAW", "ALAW")])
def test_g711_decodes_every_code_as_libsndfile_does(encoding: str, subtype: str) -> None:
    codes = bytes(range(256))
    reference, _ = soundfile.read(
        io.BytesIO(codes), samplerate=8000, channels=1, format="RAW", subtype=subtype, dtype="float32"
    )
    assert decode_pcm(codes, encoding, 1, 8000).tobytes() == reference.tobytes()


def test_linear16_is_scaled_by_32768() -> None:
    assert decode_pcm(b"\x00\x80\xff\x7f\x00\x40", "LINEAR16", 1, 16000).tolist() == [-1.0, 32767 / 32768, 0.5]


def test_float32_passes_and_is_checked() -> None:
    assert decode_pcm(np.array([0.5, -0.25], "<f4").tobytes(), "FLOAT32", 1, 16000).tolist() == [0.5, -0.25]
    with pytest.raises(AudioError, match="sample 1 of 2 is nan"):
        decode_pcm(np.array([0.5, np.nan], "<f4").tobytes(), "FLOAT32", 1, 16000)


def test_interleaved_channels_are_mixed() -> None:
    assert decode_pcm(np.array([16384, 0, 0, -16384], "<i2").tobytes(), "LINEAR16", 2, 16000).tolist() == [0.25, -0.25]


@pytest.mark.parametrize(
    ("data", "encoding", "channels", "rate_hz", "message"),
    [
        (b"\0" * 3, "LINEAR16", 1, 16000, "frames of 2 bytes, got 3 bytes"),
        (b"\0" * 6, "LINEAR16", 2, 16000, "frames of 4 bytes, got 6 bytes"),
        (b"\0" * 4, "OPUS", 1, 16000, "encoding must be one of LINEAR16, FLOAT32, MULAW, ALAW, got 'OPUS'"),
        (b"\0" * 4, "LINEAR16", 0, 16000, "channels must be 1..64, got 0"),
        (b"\0" * 4, "LINEAR16", 1, 7999, "sample_rate_hz must be 8000..192000, got 7999"),
    ],
)
def test_raw_audio_that_does_not_fit_is_refused(
    data: bytes, encoding: str, channels: int, rate_hz: int, message: str
) -> None:
    with pytest.raises(AudioError, match=message):
        decode_pcm(data, encoding, channels, rate_hz)


def test_every_16_bit_value_survives_decoding_and_encoding() -> None:
    data = np.arange(-32768, 32768, dtype="<i2").tobytes()
    assert encode_linear16(decode_pcm(data, "LINEAR16", 1, 16000)) == data


def test_encoding_clips_and_never_wraps() -> None:
    assert np.frombuffer(encode_linear16(np.array([2.4, -2.4], np.float32)), "<i2").tolist() == [32767, -32768]


@pytest.mark.parametrize("container", ["WAV", "FLAC", "OGG", "MP3"])
@pytest.mark.parametrize("frames", [100, 160, 400, 1599, 1600, 5000])
def test_blocks_are_the_file_in_pieces(tmp_path: Path, container: str, frames: int) -> None:
    """Also of an MP3, byte for byte: soundfile's own way of reading on loses some at every border."""
    (tmp_path / "a").write_bytes(_file_bytes(RAMP, container=container))
    whole = decode_file(tmp_path / "a", 0.01)
    blocks = list(decode_blocks(tmp_path / "a", 0.01, block_s=frames / 16000))
    sizes = [len(block.samples) for block in blocks]
    assert sizes[:-1] == [frames] * (len(sizes) - 1) and 0 < sizes[-1] <= frames
    np.testing.assert_array_equal(np.concatenate([block.samples for block in blocks]), whole.samples)


def test_file_without_a_sample_is_one_block_without_a_sample(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(_file_bytes(RAMP[:0]))
    assert [len(block.samples) for block in decode_blocks(tmp_path / "a.wav", block_s=1.0)] == [0]


def test_bad_sample_is_named_with_the_place_of_its_block(tmp_path: Path) -> None:
    samples = np.zeros(1600, np.float32)
    samples[1003] = np.nan
    soundfile.write(tmp_path / "a.wav", samples, 16000, subtype="FLOAT")
    blocks = decode_blocks(tmp_path / "a.wav", block_s=0.05)
    assert len(next(blocks).samples) == 800
    with pytest.raises(AudioError, match=r"a.wav: from 0.050 s on: samples must be finite .* sample 203 of 800 is nan"):
        next(blocks)


def test_channels_are_judged_over_all_blocks(tmp_path: Path) -> None:
    """Antiphase in one block is chance, over the whole recording it is a fault."""
    tone = 0.5 * np.sin(np.arange(3200))
    soundfile.write(tmp_path / "part.wav", np.stack((tone, np.where(np.arange(3200) < 1600, -tone, tone)), 1), 16000)
    soundfile.write(tmp_path / "whole.wav", np.stack((tone, -tone), 1), 16000)
    assert [len(block.samples) for block in decode_blocks(tmp_path / "part.wav", block_s=0.1)] == [1600, 1600]
    blocks = decode_blocks(tmp_path / "whole.wav", block_s=0.1)
    assert len(next(blocks).samples) == 1600
    with pytest.raises(AudioError, match="2 channels cancel each other"):
        list(blocks)


def _read_bytes() -> int:
    """Bytes that this process has asked the system for, of files and of all else."""
    return int(Path("/proc/self/io").read_text().split()[1])


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="only Linux counts what a process reads")
@pytest.mark.parametrize(
    ("container", "subtype"), [("WAV", "PCM_16"), ("FLAC", "PCM_16"), ("OGG", "VORBIS"), ("OGG", "OPUS"), ("MP3", None)]
)
def test_part_of_a_long_file_is_read_without_the_rest(tmp_path: Path, container: str, subtype: str | None) -> None:
    """Ten seconds of five minutes are those of the whole file; of an MP3, all before them is searched for frames."""
    noise = np.random.default_rng(3).normal(0, 0.1, 16_000 * 60).astype(np.float32)
    with soundfile.SoundFile(tmp_path / "a", "w", 16_000, 1, subtype, format=container) as file:
        for _ in range(5):
            file.write(noise)
    size = (tmp_path / "a").stat().st_size
    before = _read_bytes()
    part = decode_file(tmp_path / "a", 60.0, 10.0)
    read = _read_bytes() - before
    assert read < size * (70 / 300 if container == "MP3" else 0.1) + (1 << 18)
    whole = decode_file(tmp_path / "a", 0.0, 70.0)
    np.testing.assert_allclose(part.samples, whole.samples[60 * 16_000 :], atol=1e-6)
