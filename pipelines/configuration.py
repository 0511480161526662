"""Configuration files: YAML plus `--set` overrides into a frozen msgspec Struct, with errors that name the field."""

import re
import types
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from model_runtime.errors import ConfigError

ConfigT = TypeVar("ConfigT", bound=msgspec.Struct)

_ERROR_PATH = re.compile(r"^(?P<what>.*?)(?: - at `(?:key in )?\$\.?(?P<path>.*)`)?$", re.DOTALL)
_BOUND = re.compile(r"^Expected `(?P<type>[^`]+)`(?P<bound> (?:[<>]=?|of length|matching).*)?(?P<got>, got .*)?$")
_UNKNOWN = re.compile(r"^Object contains unknown field `(?P<name>.*)`$")
_MISSING = re.compile(r"^Object missing required field `(?P<name>.*)`$")
_NO_VALUE = object()


def load_config(path: str | Path | None, overrides: Sequence[str], config_type: type[ConfigT]) -> ConfigT:
    """Gives the configuration of a file (or of the defaults, without one) with the overrides laid over it.

    Args:
        overrides: "field.path=value", the value in YAML; the later one wins. A value that YAML cannot read, such as
            the glob "*.wav", is text.

    Raises:
        ConfigError: "batch.yaml: inference.batch_size must be >= 1, got 0".
    """
    name = Path(path).name if path is not None else "configuration"
    raw = {} if path is None else _read_yaml(Path(path))
    for override in overrides:
        raw = _with_override(raw, override, config_type)
    try:
        return msgspec.convert(raw, config_type)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{name}: {_explain(str(error), raw, config_type)}") from error


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        raw = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeyLoader)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: is not YAML: {' '.join(str(error).split())}") from error
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: must be a mapping of fields, got {type(raw).__name__}")
    return raw


class _UniqueKeyLoader(yaml.SafeLoader):
    """Refuses a key that stands twice, of which YAML would silently take the last."""


def _unique_mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    loader.flatten_mapping(node)
    pairs = loader.construct_pairs(node, deep=True)
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise yaml.constructor.ConstructorError(None, None, f"the key {twice!r} stands twice", node.start_mark)
    return mapping


_UniqueKeyLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _unique_mapping)


def _with_override(raw: dict[str, Any], override: str, config_type: type) -> dict[str, Any]:
    path, equals, text = override.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise ConfigError(f"--set must be field.path=value, got {override!r}")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        value = text
    if _takes_text(config_type, keys) and not isinstance(value, (str, list, type(None))):
        value = text
    return _replaced(raw, keys, value, override)


def _replaced(raw: dict[str, Any], keys: list[str], value: Any, override: str) -> dict[str, Any]:
    if len(keys) == 1:
        return {**raw, keys[0]: value}
    inner = raw.get(keys[0])
    if inner is not None and not isinstance(inner, dict):
        raise ConfigError(f"--set {override}: {keys[0]} is no group of fields")
    return {**raw, keys[0]: _replaced(inner or {}, keys[1:], value, override)}


def _takes_text(config_type: Any, keys: list[str]) -> bool:
    """Whether the field at this path is a string (so that `--set name=2026` means the text)."""
    for key in keys:
        origin = typing.get_origin(config_type)
        if origin is dict:
            config_type = typing.get_args(config_type)[1]
            continue
        structs = [part for part in _alternatives(config_type) if isinstance(part, type)]
        struct = next((part for part in structs if issubclass(part, msgspec.Struct)), None)
        fields = {field.name: field.type for field in msgspec.structs.fields(struct)} if struct else {}
        if key not in fields:
            return False
        config_type = fields[key]
    return str in _alternatives(config_type)


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    if typing.get_origin(annotation) is typing.Annotated:
        return _alternatives(typing.get_args(annotation)[0])
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return tuple(part for each in typing.get_args(annotation) for part in _alternatives(each))
    return (annotation,)


def _explain(message: str, raw: dict[str, Any], config_type: type) -> str:
    match = _ERROR_PATH.match(message)
    what, path = (match["what"], match["path"] or "") if match else (message, "")
    prefix = f"{path}." if path else ""
    if unknown := _UNKNOWN.match(what):
        known = ", ".join(_known_fields(config_type, path))
        return f"{prefix}{unknown['name']} is no field; {path or 'the configuration'} has {known}"
    if missing := _MISSING.match(what):
        return f"{prefix}{missing['name']} is required"
    if bound := _BOUND.match(what):
        wanted = (bound["bound"] or "").strip()
        value = _value_at(raw, path)
        got = f", got {value!r}" if value is not _NO_VALUE else (bound["got"] or "")
        return f"{path} must be {wanted or bound['type']}{got}"
    if what.startswith("Invalid enum value"):
        value = _value_at(raw, path)
        return f"{path} must be one of {_choices(config_type, path)}, got {value!r}"
    # What __post_init__ says already names field, value and bound.
    return f"{prefix}{what}"


def _field_type(config_type: Any, path: str) -> Any:
    for key in [key for key in re.split(r"[.\[\]]+", path) if key]:
        origin = typing.get_origin(config_type)
        if origin in (dict, tuple, list):
            arguments = typing.get_args(config_type)
            config_type = arguments[1] if origin is dict else arguments[0]
            continue
        for part in _alternatives(config_type):
            if isinstance(part, type) and issubclass(part, msgspec.Struct):
                config_type = {field.name: field.type for field in msgspec.structs.fields(part)}.get(key)
    return config_type


def _known_fields(config_type: Any, path: str) -> list[str]:
    for part in _alternatives(_field_type(config_type, path)):
        if isinstance(part, type) and issubclass(part, msgspec.Struct):
            return list(part.__struct_fields__)
    return []


def _choices(config_type: Any, path: str) -> str:
    return ", ".join(
        repr(choice)
        for part in _alternatives(_field_type(config_type, path))
        if typing.get_origin(part) is typing.Literal
        for choice in typing.get_args(part)
    )


def _value_at(raw: Any, path: str) -> Any:
    for key in [key for key in re.split(r"[.\[\]]+", path) if key]:
        if isinstance(raw, dict) and key in raw:
            raw = raw[key]
        elif isinstance(raw, list) and key.isdigit() and int(key) < len(raw):
            raw = raw[int(key)]
        else:
            return _NO_VALUE
    return raw
