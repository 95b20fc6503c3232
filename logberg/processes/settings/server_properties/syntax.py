r"""Reads a .properties file exactly as Java's `Properties.load` does.

The syntax is the library `javaproperties`'s; `tests/oracles/properties` compares it with Java. A
file is Latin-1, as Kafka reads it; other characters are written as \uXXXX. If a key is there
twice, the last one counts, as in Java.
"""

import io
import re
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from logberg.processes.settings.settings_files import SettingsError

_LINE_END = re.compile(r"\r\n|\r|\n")
_CONTINUED = re.compile(r"\\[\n\r]?\Z")


class Source(IntEnum):
    """Where a value comes from; a greater one wins."""

    FILE = 1
    ENVIRONMENT = 2
    COMMAND_LINE = 3


class Given(NamedTuple):
    """The value of a key, and where it stands."""

    value: str
    source: Source
    place: str
    """For messages, such as `server.properties, line 3`."""


class Properties(NamedTuple):
    """What a file says."""

    values: dict[str, Given]
    """By key; of a key that is there several times, the last one."""
    duplicates: tuple[tuple[str, str, str], ...]
    """Keys that are there again: the key, the place that doesn't count, and the one that does."""


def read_properties(path: Path) -> Properties:
    """Read a file. Raises SettingsError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SettingsError(
            f"{path}: can't be read ({error.strerror}). Name a file with --config."
        ) from None
    return parse(data, path.name)


def parse(data: bytes, name: str) -> Properties:
    """Return what the content of a file says. `name` is for messages. Raises SettingsError."""
    # Imported here: most nodes have a TOML file, and a library that nobody needs is not loaded.
    from javaproperties import InvalidUEscapeError, KeyValue, Whitespace  # noqa: PLC0415
    from javaproperties import parse as elements  # noqa: PLC0415

    values: dict[str, Given] = {}
    again = []
    line = 1
    element = None
    try:
        for element in elements(io.BytesIO(data)):
            if isinstance(element, KeyValue):
                given = Given(element.value, Source.FILE, f"{name}, line {line}")
                if element.key in values:
                    again.append((element.key, values[element.key].place, given.place))
                values[element.key] = given
            line += len(_LINE_END.findall(element.source))
        if isinstance(element, Whitespace) and _CONTINUED.search(element.source):
            # Java reads a lone backslash at the file's end as a key without a name.
            values[""] = Given("", Source.FILE, f"{name}, line {line}")
    except InvalidUEscapeError as error:
        raise SettingsError(
            f"{name}, line {line} or later: {error.escape!r} is not four hexadecimal digits behind "
            "\\u; write a backslash twice if you mean one."
        ) from None
    return Properties(values, tuple(again))
