"""Reads configuration files: TOML into settings of a class.

Rule: all problems are reported with the file, the key and what to write instead. Unknown keys are
refused: a setting that is misspelt and silently ignored is worse than an error. Relative paths are
relative to the file.
"""

from pathlib import Path
from typing import Any, TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)


class SettingsError(Exception):
    """A configuration file can't be used; the message says where and what to do."""


def load(path: Path, kind: type[T]) -> T:
    """Read a configuration file. Raises SettingsError."""
    data = _content(path)
    try:
        return msgspec.toml.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{path}: {_explain(str(error), kind)}") from None
    except msgspec.DecodeError as error:
        raise SettingsError(f"{path}: not valid TOML: {error}") from None


def read_toml(path: Path) -> dict[str, Any]:
    """Read a file without checking its keys. Raises SettingsError."""
    data = _content(path)
    try:
        return msgspec.toml.decode(data, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise SettingsError(f"{path}: not valid TOML: {error}") from None


def convert(table: dict[str, Any], kind: type[T], names: str) -> T:
    """Return settings from keys and values. `names`: of the files. Raises SettingsError."""
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{names}: {_explain(str(error), kind)}") from None


def resolve(config: Path, path: str) -> Path:
    """A path of a configuration file, relative to that file."""
    return (config.parent / path).resolve()


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SettingsError(
            f"{path}: can't be read ({error.strerror}). Name a file with --config."
        ) from None


def _explain(message: str, kind: type[msgspec.Struct]) -> str:
    if "unknown field" in message:
        return f"{message}. Known keys: {', '.join(kind.__struct_fields__)}."
    return message
