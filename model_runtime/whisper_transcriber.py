"""Clips in, transcripts out: Whisper with its windows, its guards and their fall-backs."""

import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from model_runtime.card import ModelCard
from model_runtime.errors import AudioError
from model_runtime.graph import Graph
from model_runtime.records import Word
from model_runtime.tflite import ROWS_ARE_INDEPENDENT
from model_runtime.whisper_beam import search_beam
from model_runtime.whisper_config import WhisperConfig
from model_runtime.whisper_decode import Hypothesis, feed, search_rows
from model_runtime.whisper_features import SAMPLE_RATE_HZ
from model_runtime.whisper_framing import WhisperFraming
from model_runtime.whisper_guards import is_repetition, is_silence, says_twice
from model_runtime.whisper_model import Heard, WhisperModel
from model_runtime.whisper_prompt import ENGLISH, Prompts
from model_runtime.whisper_rules import TokenRules, probability
from model_runtime.whisper_segments import Segment, segments_of, without_timestamps
from model_runtime.whisper_tokens import Tokenizer
from model_runtime.whisper_words import timed_words

# Windows come in these steps, so that few sizes are met, and reach so far beyond a clip.
_WINDOW_STEP_SAMPLES = 5 * SAMPLE_RATE_HZ
_MARGIN_SAMPLES = SAMPLE_RATE_HZ
# Rows of a decoding: what one hears takes 18 MB for tiny and 37 for base, three times over while it decodes, and each
# batch size has an interpreter of its own. Above 4, a step's cost grows with its rows.
_MOST_ROWS = 4


class Transcript(NamedTuple):
    """What was said in a clip; text and words are empty where there was no speech.

    The language is that of the configuration or the one that was detected, "" where a clip without samples left
    nothing to detect it by.

    Word times are ms since the clip's first sample. A word's confidence is the geometric mean of its tokens'
    probabilities. `temperature` is the one at which the transcript was accepted.
    """

    text: str
    words: tuple[Word, ...]
    language: str
    no_speech: float
    average_log_prob: float
    temperature: float
    # Where timestamps are asked for.
    segments: tuple[Segment, ...] = ()


class _Attempt(NamedTuple):
    """A hypothesis with what it is judged by; `lead` is the attention [heads, T] of the prompt's last tokens."""

    hypothesis: Hypothesis
    lead: tuple[np.ndarray, ...]
    no_speech: float
    temperature: float
    language: str


class WhisperTranscriber:
    """One model and one configuration; read-only, and safe to use from many threads.

    A transcript is a function of its clip alone: not of other clips, their number or order, the clock or chance.
    """

    def __init__(self, card: ModelCard, graphs: Sequence[Graph], config: WhisperConfig | None = None) -> None:
        """Takes the graphs in the card's order: encoder, cross, decoder, and prompt where the card has it.

        Raises:
            ConfigError: the card is of another kind, or the model does not know the language or task.
            ModelError: the tokenizer cannot be read.
        """
        self._config = config or WhisperConfig()
        self._framing = card.framing_as(WhisperFraming)
        self._tokenizer = Tokenizer(Path(card.folder) / self._framing.tokenizer, self._framing.end_of_text)
        self._prompts = Prompts(self._framing, self._config, self._tokenizer)
        self._rules = TokenRules(self._framing, self._config.timestamps)
        self._model = WhisperModel(self._framing, *graphs)
        self._encoder = graphs[0]

    @property
    def most_rows(self) -> int:
        """Clips that a call should have at most."""
        return self._encoder.most_rows

    def transcribe(self, clips: Sequence[np.ndarray]) -> list[Transcript]:
        """Gives the transcript of each clip, in order.

        Args:
            clips: float32 [n], 16 kHz, -1..1, at most 30 s; also empty.

        Raises:
            AudioError: a clip is longer than the model's window.
        """
        full = self._framing.window_samples
        transcripts: dict[int, Transcript] = {}
        windows: dict[int, int] = {}
        for index, clip in enumerate(clips):
            if len(clip) > full:
                raise AudioError(f"a clip must have at most {full} samples (30 s), clip {index} has {len(clip)}")
            if len(clip):
                windows[index] = self._window(len(clip))
            else:
                transcripts[index] = Transcript("", (), self._prompts.language, 1.0, 0.0, 0.0)
        # Ascending, so that what a short window leaves open is there when the full one's turn comes.
        for window in sorted({*windows.values(), full}):
            for batch in self._batches([index for index in windows if windows[index] == window]):
                found = self._transcribe_window([clips[index] for index in batch], window)
                for index, transcript in zip(batch, found, strict=True):
                    if transcript is None:
                        windows[index] = full
                    else:
                        transcripts[index] = transcript
        return [transcripts[index] for index in range(len(clips))]

    def _window(self, samples: int) -> int:
        shortest = self._config.shortest_window_ms * SAMPLE_RATE_HZ // 1000
        wanted = max(shortest, samples + _MARGIN_SAMPLES)
        return min(self._framing.window_samples, -(-wanted // _WINDOW_STEP_SAMPLES) * _WINDOW_STEP_SAMPLES)

    def _batches(self, indexes: list[int]) -> Iterator[list[int]]:
        # Where rows are computed one by one, clips side by side would take turns in one interpreter.
        most = _MOST_ROWS if ROWS_ARE_INDEPENDENT else 1
        size = max(1, most // max(self._config.beam_size, self._config.best_of))
        return (indexes[first : first + size] for first in range(0, len(indexes), size))

    def _transcribe_window(self, clips: Sequence[np.ndarray], window: int) -> list[Transcript | None]:
        """Gives a transcript per clip, None where a window shorter than the full one gave none to accept."""
        heard = [self._model.hear(clip, window) for clip in clips]
        languages = self._languages(heard)
        is_full = window == self._framing.window_samples
        temperatures = self._config.temperatures if is_full else self._config.temperatures[:1]
        attempts: list[list[_Attempt]] = [[] for _ in clips]
        accepted: list[Transcript | None] = [None] * len(clips)
        rows = list(range(len(clips)))
        for temperature in temperatures:
            draws = [_draws(clips[row], len(attempts[row]), self._config.best_of) for row in rows]
            found = self._search([heard[row] for row in rows], [languages[row] for row in rows], temperature, draws)
            for row, attempt in zip(rows, found, strict=True):
                attempts[row].append(attempt)
                if self._is_acceptable(attempt, is_full):
                    accepted[row] = self._transcript(attempt, len(clips[row]))
            rows = [row for row in rows if accepted[row] is None]
            if not rows:
                break
        if is_full:
            for row in rows:
                accepted[row] = self._transcript(self._least_bad(attempts[row]), len(clips[row]))
        return accepted

    def _languages(self, heard: Sequence[Heard]) -> list[str]:
        if self._prompts.language:
            return [self._prompts.language] * len(heard)
        start = np.full((len(heard), 1), self._framing.start_of_transcript, np.int32)
        (prefix,) = feed(self._model.decode(heard), start)
        return [self._prompts.most_probable_language(logits) for logits in prefix.logits]

    def _search(
        self,
        heard: Sequence[Heard],
        languages: Sequence[str],
        temperature: float,
        draws: Sequence[list["np.random.Generator"]],
    ) -> list[_Attempt]:
        """Gives the best hypothesis of each clip at this temperature."""
        config, framing = self._config, self._framing
        width = config.best_of if temperature > 0 else config.beam_size
        decoding = self._model.decode([one for one in heard for _ in range(width)])
        prompts = np.array([self._prompts.tokens(language) for language in languages], np.int32).repeat(width, axis=0)
        prefixes = feed(decoding, prompts, self._prompts.start)
        limit = min(config.max_tokens, framing.max_tokens - prompts.shape[1])
        if width > 1 and temperature == 0:
            best = search_beam(decoding, prefixes[-1], self._rules, framing.end_of_text, limit, width)
        else:
            rows = [draw for clip in draws for draw in clip]
            every = search_rows(decoding, prefixes[-1], self._rules, framing.end_of_text, limit, temperature, rows)
            best = [max(every[row : row + width], key=self._worth) for row in range(0, len(every), width)]
        return [
            _Attempt(
                hypothesis,
                tuple(prefix.attention[number * width] for prefix in prefixes[:-1]),
                probability(prefixes[0].logits[number * width], framing.no_speech),
                temperature,
                languages[number],
            )
            for number, hypothesis in enumerate(best)
        ]

    def _worth(self, hypothesis: Hypothesis) -> tuple[bool, float]:
        return hypothesis.loop(self._framing.end_of_text) is None, hypothesis.average_log_prob

    def _is_acceptable(self, attempt: _Attempt, is_full: bool) -> bool:
        average = attempt.hypothesis.average_log_prob
        if is_silence(attempt.no_speech, average, self._config):
            return True
        if not is_full and says_twice(self._tokenizer.decode(attempt.hypothesis.tokens)):
            return False
        return not self._repeats(attempt.hypothesis) and average >= self._config.log_prob_threshold

    def _least_bad(self, attempts: Sequence[_Attempt]) -> _Attempt:
        """Gives the most probable attempt that does not repeat itself, or one that is cut before it does."""
        best = max(attempts, key=lambda one: (not self._repeats(one.hypothesis), one.hypothesis.average_log_prob))
        end = best.hypothesis.loop(self._framing.end_of_text)
        return best if end is None else best._replace(hypothesis=best.hypothesis.cut(end))

    def _repeats(self, hypothesis: Hypothesis) -> bool:
        text = self._tokenizer.decode(hypothesis.tokens)
        return hypothesis.loop(self._framing.end_of_text) is not None or is_repetition(text, self._config)

    def _transcript(self, attempt: _Attempt, samples: int) -> Transcript:
        hypothesis, language = attempt.hypothesis, attempt.language
        average = hypothesis.average_log_prob
        facts = language, attempt.no_speech, average, attempt.temperature
        text = self._tokenizer.decode(hypothesis.tokens).strip()
        if not text or is_silence(attempt.no_speech, average, self._config):
            return Transcript("", (), *facts)
        words: tuple[Word, ...] = ()
        first_timestamp = self._framing.no_timestamps + 1
        if self._config.word_times:
            written = ENGLISH if self._config.task == "translate" else language
            spoken = without_timestamps(hypothesis, first_timestamp)
            words = timed_words(self._tokenizer, spoken, attempt.lead, written, samples)
        segments: tuple[Segment, ...] = ()
        if self._config.timestamps:
            length_ms = samples * 1000 // SAMPLE_RATE_HZ
            segments = segments_of(hypothesis.tokens, first_timestamp, self._tokenizer.decode, length_ms)
        return Transcript(text, words, *facts, segments)


def _draws(clip: np.ndarray, attempt: int, count: int) -> list["np.random.Generator"]:
    """Gives generators that depend on the clip's samples and the number of the attempt alone."""
    seed = zlib.crc32(np.ascontiguousarray(clip, np.float32).tobytes())
    return [np.random.default_rng([seed, attempt, number]) for number in range(count)]
