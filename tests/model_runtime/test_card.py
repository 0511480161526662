"""Model cards: what is refused, and how it is said."""

from pathlib import Path

import pytest
import yaml

from model_runtime.card import PACKAGE_MODELS, SpectralFraming, load_card
from model_runtime.errors import ConfigError, ModelError
from model_runtime.whisper_framing import WhisperFraming

ROOT = Path(__file__).resolve().parents[2]
SILERO = yaml.safe_load((ROOT / "docs/cards/silero-vad/card.yaml").read_text(encoding="utf-8"))


def write(folder: Path, **changes: object) -> str:
    path = folder / "card.yaml"
    path.write_text(yaml.safe_dump({**SILERO, **changes}), encoding="utf-8")
    return str(path)


def test_a_card_is_found_by_its_path_and_by_its_folder(tmp_path: Path) -> None:
    assert load_card(write(tmp_path)) == load_card(str(tmp_path))


def test_files_are_relative_to_the_card(tmp_path: Path) -> None:
    assert load_card(write(tmp_path)).paths("vad") == {"float32": tmp_path / "silero16k_fp32.tflite"}


def test_an_unknown_model_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ModelError, match=r"no model 'nope'.*unison-vad"):
        load_card("nope")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "sing"}, r"Invalid enum value 'sing' - at `\$.task`"),
        ({"kind": "spectral"}, "kind of a vad model must be one of .*frame_probability.*, got spectral"),
        ({"speed": 3}, "unknown field `speed`"),
        ({"variants": {}}, "variants must name at least one variant"),
        (
            {"variants": {"int8": {"mask": "a"}}},
            r"variants.int8 must name a file for each of \['vad'\], got \['mask'\]",
        ),
        ({"framing": {"block_samples": 0}}, "block_samples must be >= 1, got 0"),
        ({"framing": {"hop": 1}}, "unknown field `hop`"),
        ({"sample_rate_hz": "fast"}, r"Expected `int`, got `str` - at `\$.sample_rate_hz`"),
    ],
)
def test_a_wrong_card_is_refused_with_its_path_and_field(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    path = write(tmp_path, **changes)
    with pytest.raises(ConfigError, match=message) as caught:
        load_card(path)
    assert str(caught.value).startswith(path)


def test_broken_yaml_is_refused_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "card.yaml"
    path.write_text("a: [", encoding="utf-8")
    with pytest.raises(ConfigError, match=str(path)):
        load_card(str(path))


def test_the_window_must_be_a_multiple_of_the_hop() -> None:
    with pytest.raises(ValueError, match="window_samples must be a multiple of hop_samples, got 512 and 160"):
        SpectralFraming(512, 160)


@pytest.mark.parametrize("card", sorted(PACKAGE_MODELS.glob("*/card.yaml")), ids=lambda path: path.parent.name)
def test_every_packaged_card_has_its_files_licence_and_figures(card: Path) -> None:
    loaded = load_card(card.parent.name)
    files = {path for binding in loaded.graphs for path in loaded.paths(binding.role).values()}
    assert [path for path in files if not path.is_file()] == []
    assert loaded.licence and loaded.source and loaded.data and loaded.quality


WHISPER = {
    **{"name": "w", "version": "1", "task": "asr", "kind": "whisper", "sample_rate_hz": 16000},
    "variants": {"float32": {"decoder": "decoder.tflite"}},
    "graphs": [{"role": "decoder", "inputs": {"token": "token"}, "outputs": {"logits": "logits"}}],
    "framing": {
        **{"tokenizer": "tokenizer.json", "end_of_text": 9, "start_of_transcript": 10, "translate": 11},
        **{"transcribe": 12, "start_of_previous": 13, "no_speech": 14, "no_timestamps": 15},
        **{"suppress": [1, 2], "suppress_at_begin": [9], "alignment_heads": [[1, 0]], "languages": {"en": 11}},
    },
    "sha256": {"decoder.tflite": "00"},
}


def test_a_whisper_card_has_its_tokens_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "card.yaml").write_text(yaml.safe_dump(WHISPER), encoding="utf-8")
    framing = load_card(str(tmp_path)).framing_as(WhisperFraming)
    assert (framing.suppress, framing.alignment_heads, framing.languages) == ((1, 2), ((1, 0),), {"en": 11})
    assert (framing.mel_bins, framing.window_samples, framing.max_tokens) == (80, 480_000, 448)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alignment_heads": []}, "alignment_heads must name at least one pair"),
        ({"window_samples": 1000}, "window_samples must be a multiple of 320, got 1000"),
        ({"end_of_text": 12}, "end_of_text must lie below start_of_transcript, got 12 and 10"),
        ({"mel_bins": 0}, "mel_bins must be >= 1, got 0"),
        ({"max_tokens": 3}, "max_tokens must be >= 8, got 3"),
    ],
)
def test_a_wrong_whisper_card_is_refused(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    card = {**WHISPER, "framing": {**WHISPER["framing"], **changes}}
    (tmp_path / "card.yaml").write_text(yaml.safe_dump(card), encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        load_card(str(tmp_path))


def test_a_ctc_card_has_its_tokens_in_itself(tmp_path: Path) -> None:
    card = {**WHISPER, "kind": "utterance_ctc", "framing": {"pad_multiple_samples": 1, "frame_samples": 1}}
    (tmp_path / "card.yaml").write_text(yaml.safe_dump(card), encoding="utf-8")
    with pytest.raises(ConfigError, match="tokens of kind utterance_ctc must be at least 2, got 0"):
        load_card(str(tmp_path))


def test_models_of_the_user_are_found_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "my-vad"
    folder.mkdir()
    write(folder)
    assert load_card("my-vad", (PACKAGE_MODELS, tmp_path)) == load_card(str(folder))
