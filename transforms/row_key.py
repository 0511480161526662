"""The key of a row's result: the same row with the same content, models and settings has the same key in every run."""

import hashlib
from collections.abc import Sequence

import msgspec

from model_runtime.card import load_card
from model_runtime.devices import RouteConfig
from model_runtime.recipe import load_recipe
from transforms.file_access import file_state
from transforms.records import ClipRow

_STAGES = ("denoise", "vad", "asr")
_KEY_BYTES = 16


def row_key(row: ClipRow, work: str) -> str:
    """Gives a key of 32 hexadecimal digits.

    Embedded audio counts by its bytes; a file by its path, size and time of change, as make and rsync have it, for
    the answer must not cost as much as reading all the audio again.

    Args:
        work: what work_fingerprint gives.
    """
    digest = hashlib.blake2b(work.encode(), digest_size=_KEY_BYTES)
    part = (row.source_path, row.row, row.path, row.sample_rate_hz, row.start_s, row.duration_s, row.error)
    digest.update(msgspec.json.encode(part))
    digest.update(row.columns)
    if row.data is not None:
        digest.update(hashlib.blake2b(row.data).digest())
    elif row.path:
        digest.update(file_state(row.path).encode())
    return digest.hexdigest()


def work_fingerprint(recipe: str, route: RouteConfig, settings: Sequence[object]) -> str:
    """Gives a digest of all that results depend on besides the row: recipe, cards, model files, variants, settings.

    A device that is fallen back to is not part of it: a night without the NPU does not spoil the results.

    Args:
        settings: values that msgspec can encode.

    Raises:
        ConfigError, ModelError: there is no such recipe or model.
    """
    loaded = load_recipe(recipe)
    digest = hashlib.blake2b(msgspec.json.encode((loaded, route.variants, route.variants_by_device, settings)))
    for stage in _STAGES:
        config = getattr(loaded, stage)
        if config is None:
            continue
        card = load_card(config.model)
        digest.update(msgspec.json.encode(msgspec.structs.replace(card, folder="", best_batch_size={})))
        for binding in card.graphs:
            for variant, path in sorted(card.paths(binding.role).items()):
                if path.is_file():
                    digest.update(variant.encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
