"""SessionNotes: what is counted and refused in a turn of a session. Knows no Beam."""

from collections import Counter

from model_runtime.errors import ConfigError, SpeechError
from transforms.dead_letter import DeadLetter
from transforms.session_book import SessionBook
from transforms.stream_records import Chunk, refused_chunk


class SessionNotes:
    """Counts by the names of COUNTS (session_turn.py), and the dead letters."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.dead_letters: list[DeadLetter] = []

    def count(self, name: str, number: int = 1) -> None:
        """Counts something."""
        self.counts[name] += number

    def refuse(self, chunk: Chunk, stage: str, error: SpeechError) -> None:
        """Makes a dead letter of a chunk that is not heard."""
        self.count("chunks_refused")
        self.dead_letters.append(refused_chunk(chunk, stage, error))

    def refuse_settings(self, chunk: Chunk, problems: list[str]) -> None:
        """Makes a dead letter of a chunk that is heard, but not as it asks for."""
        if problems:
            self.count("settings_refused")
            self.dead_letters.append(refused_chunk(chunk, "settings", ConfigError("; ".join(problems))))

    def cut_off(self, book: SessionBook) -> None:
        """Drops what is left over of a frame whose rest will not come."""
        if book.split_frame:
            self.count("frames_cut_off")
        book.split_frame = b""
