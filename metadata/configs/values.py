"""Checks one value against its key's definition, with Kafka's rules and Kafka's sentences.

Kafka trims a value before it reads it, and stores it as it was given. So do we.
"""

import re
from typing import Final

from metadata.configs.definitions import Definition

Parsed = bool | int | float | str | tuple[str, ...] | None

_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_DOUBLE: Final = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)"
)
_BITS: Final = {"short": 15, "int": 31, "long": 63}
_COMMA: Final = re.compile(r"\s*,\s*")
_REPLICA: Final = re.compile(r"(?:[0-9]+:[0-9]+)?")
_DURATION: Final = re.compile(
    r"P(?=.)(?:[0-9]+D)?(?:T(?=.)(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:\.[0-9]{0,9})?S)?)?",
    re.IGNORECASE,
)
_CLASS: Final = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*", re.ASCII)


class ConfigValueError(ValueError):
    """A value is not possible. The message names the key and says what is."""


def parse(key: str, text: str, definition: Definition) -> Parsed:
    """Return the value of a text, checked. Raises ConfigValueError."""
    value = _typed(key, text.strip(), definition)
    if definition.type == "list":
        assert isinstance(value, tuple)
        _check_list(key, value, definition)
    elif definition.one_of and not _is_one_of(str(value), definition):
        raise _invalid(key, value, f"String must be one of: {', '.join(definition.one_of)}")
    elif definition.non_empty and not value:
        raise _invalid(key, value, "String must be non-empty")
    if definition.form:
        _check_form(key, value, definition)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        # No comparison holds for NaN, so it passes, as it does in Kafka.
        if definition.min is not None and value < definition.min:
            raise _invalid(key, value, f"Value must be at least {definition.min}")
        if definition.max is not None and value > definition.max:
            raise _invalid(key, value, f"Value must be no more than {definition.max}")
    return value


def entries(text: str) -> tuple[str, ...]:
    """Return the entries of a list, as Kafka divides it: an empty text has none."""
    trimmed = text.strip()
    return tuple(_COMMA.split(trimmed)) if trimmed else ()


def _typed(key: str, text: str, definition: Definition) -> Parsed:
    match definition.type:
        case "boolean":
            if text.lower() not in ("true", "false"):
                raise _invalid(key, text, "Expected value to be either true or false")
            return text.lower() == "true"
        case "short" | "int" | "long":
            limit = 1 << _BITS[definition.type]
            # A longer text can't be in range, and takes long to read.
            number = int(text) if _WHOLE.fullmatch(text) and len(text) <= 30 else limit
            if not -limit <= number < limit:
                raise _not_a_number(key, text, definition)
            return number
        case "double":
            if _DOUBLE.fullmatch(text) is None:
                raise _not_a_number(key, text, definition)
            return float(text.rstrip("fFdD") if text[-1:] in "fFdD" else text)
        case "list":
            return entries(text)
        case "class":
            if _CLASS.fullmatch(text) is None:
                raise _invalid(key, text, f"Class {text} could not be found.")
            return text
        case _:
            return text


def _check_list(key: str, value: tuple[str, ...], definition: Definition) -> None:
    if definition.form == "throttled-replicas":
        return
    if definition.non_empty and not value:
        raise ConfigValueError(f"Configuration '{key}' must not be empty.")
    for entry in value:
        if definition.each and entry and entry not in definition.each:
            raise _invalid(key, entry, f"String must be one of: {', '.join(definition.each)}")
        if not entry:
            raise ConfigValueError(f"Configuration '{key}' values must not be empty.")


def _is_one_of(text: str, definition: Definition) -> bool:
    if definition.any_case:
        return text.lower() in {allowed.lower() for allowed in definition.one_of}
    return text in definition.one_of


def _check_form(key: str, value: Parsed, definition: Definition) -> None:
    match definition.form:
        case "gzip-level":
            assert isinstance(value, int)
            if value != -1 and not 1 <= value <= 9:
                raise _invalid(key, value, "Value must be between 1 and 9 or equal to -1")
        case "throttled-replicas":
            assert isinstance(value, tuple)
            if value != ("*",) and not all(_REPLICA.fullmatch(entry) for entry in value):
                raise ConfigValueError(
                    f"Invalid value {', '.join(value)} for configuration {key}: it must be the "
                    "literal '*' or a list of replicas in the following format: "
                    "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
                )
        case "auto-offset-reset":
            assert isinstance(value, str)
            kind, colon, duration = value.partition(":")
            by_duration = kind == "by_duration" and colon and _DURATION.fullmatch(duration)
            if value not in ("latest", "earliest") and not by_duration:
                raise _invalid(
                    key,
                    value,
                    "The value must be either 'earliest', 'latest' or of the format "
                    "'by_duration:<PnDTnHnMn.nS>'.",
                )
        case other:
            raise AssertionError(other)


def _not_a_number(key: str, text: str, definition: Definition) -> ConfigValueError:
    return _invalid(key, text, f"Not a number of type {definition.type.upper()}")


def _invalid(key: str, value: object, why: str) -> ConfigValueError:
    return ConfigValueError(f"Invalid value {str(value)[:200]} for configuration {key}: {why}")
