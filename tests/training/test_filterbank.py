"""The committed feature graphs against Kaldi's own filterbank."""

from pathlib import Path

import numpy as np
import pytest

from training.interpreter import Model

kaldi = pytest.importorskip("kaldi_native_fbank", reason="the reference is kaldi-native-fbank")

MODELS = Path(__file__).resolve().parents[2] / "model_runtime" / "models"
BINS = 40
FLOOR = 1e-5


def kaldi_features(pcm: np.ndarray) -> np.ndarray:
    options = kaldi.FbankOptions()
    options.frame_opts.samp_freq = 16000
    options.frame_opts.dither = 0.0
    options.frame_opts.snip_edges = True
    options.mel_opts.num_bins = BINS
    options.mel_opts.low_freq = 80.0
    options.mel_opts.high_freq = 3800.0
    options.use_energy = False
    options.energy_floor = 0.0
    bank = kaldi.OnlineFbank(options)
    bank.accept_waveform(16000, pcm.tolist())
    bank.input_finished()
    frames = np.stack([bank.get_frame(i) for i in range(bank.num_frames_ready)])
    return np.maximum(frames, np.log(FLOOR)) * 0.25 + 1.0


def tone_in_noise(seconds: float, level: float) -> np.ndarray:
    rng = np.random.default_rng(3)
    time = np.arange(int(seconds * 16000)) / 16000
    sweep = np.sin(2 * np.pi * (200 * time + 700 * time**2))
    return (level * (sweep + 0.1 * rng.standard_normal(len(time))) + 0.02).astype(np.float32)


@pytest.fixture(params=["unison-asr-stream", "unison-asr-transducer", "unison-asr-batch"])
def graph(request: pytest.FixtureRequest) -> Model:
    return Model(MODELS / request.param / "fbank.tflite")


@pytest.mark.parametrize("level", [0.3, 0.003])
def test_features_equal_kaldi(graph: Model, level: float) -> None:
    pcm = tone_in_noise(1.0, level)
    features = graph.call(samples=pcm[None])[0]["features"][0]
    np.testing.assert_allclose(features, kaldi_features(pcm), atol=2e-3)


def test_frames_are_those_of_snip_edges(graph: Model) -> None:
    for samples in (400, 559, 560, 1520, 8240):
        features = graph.call(samples=np.zeros((1, samples), np.float32))[0]["features"]
        assert features.shape == (1, 1 + (samples - 400) // 160, BINS)


def test_digital_silence_gives_the_floor(graph: Model) -> None:
    features = graph.call(samples=np.zeros((2, 1520), np.float32))[0]["features"]
    np.testing.assert_allclose(features, np.log(FLOOR) * 0.25 + 1.0, rtol=1e-5)


def test_a_block_behind_its_context_gives_the_frames_of_the_whole(graph: Model) -> None:
    pcm = np.pad(tone_in_noise(0.4, 0.1), (240, 0))
    whole = graph.call(samples=pcm[None])[0]["features"]
    starts = range(0, len(pcm) - 240, 1280)
    blocks = [graph.call(samples=pcm[None, i : i + 1520])[0]["features"] for i in starts]
    np.testing.assert_allclose(np.concatenate(blocks, axis=1), whole, atol=1e-5)
