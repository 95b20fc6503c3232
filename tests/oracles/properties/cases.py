"""Draws files of properties, and says what we read from them, in the words of the Java program."""

import re
from collections.abc import Iterator
from random import Random
from typing import Final

from logberg.processes.settings.server_properties.syntax import parse
from logberg.processes.settings.settings_files import SettingsError

REFUSED: Final = "refused"
_PIECES: Final = (
    b"\\", b"\\", b"\\\\", b"\n", b"\n", b"\r", b"\r\n", b" ", b"\t", b"\f", b"=", b"=", b":", b"#",
    b"!", b"a", b"b", b"n", b"t", b"f", b"r", b"\\u0041", b"\\u00e9", b"\\u20AC",
    b"\\u+123", b"\\n", b"\\t", b"\\:", b"\\=", b"\\ ", b"\\#",
    b"\\z", b"node.id", b"1", b"\xe9", b"\x00", b"\x0b", b"\x85", b"\xa0", b"\x1c",
)  # fmt: skip
FIXED: Final = (
    b"", b"a", b"a=", b"=a", b"a b", b"a:b", b" \t\fa = b ", b"a\\\nb", b"a=b\\\n   c", b"a=b\\",
    b"a=b\\\\\nc=d", b"#a\\\nb=c", b"a=1\na=2", b"a==b", b"a = = b", b"a\\ b=c", b"a=\\u0041",
    b"!x\na=1", b"a=b\rc=d\r\ne=f", b"\\\n\\\na=b", b"a=b\\\r\n c", b"a=b\\\n#c",
    b"a=\\uD83D\\uDE00",
)  # fmt: skip
"""A rule of the format each."""

_COMMENT_BEHIND_NOTHING: Final = re.compile(
    rb"(?:\A|[\r\n])(?:[ \t\f]*\\(?:\r\n|\r|\n))+[ \t\f]*[#!]"
)
"""Lines that hold only a backslash, and then a comment."""


def may_differ(content: bytes) -> bool:
    """Tell whether the library and Java may differ, as is known.

    Behind a line that holds only a backslash, Java reads # and ! as the begin of a comment. The
    library reads the line as the continuation that the backslash announces.
    """
    return _COMMENT_BEHIND_NOTHING.search(content) is not None


def draw(dice: Random) -> bytes:
    """Draw the content of a file."""
    return b"".join(dice.choice(_PIECES) for _ in range(dice.randrange(1, 24)))


def answer(content: bytes) -> str:
    """Return what we read, as the Java program writes it."""
    try:
        found = parse(content, "file").values
    except SettingsError:
        return REFUSED
    pairs = sorted((_hex(key), _hex(given.value)) for key, given in found.items())
    return " ".join(f"{key}={value}" for key, value in pairs)


def table(lines: list[str]) -> Iterator[tuple[bytes, str]]:
    """Yield contents and Java's answers, as `answers.txt` holds them."""
    for line in lines:
        content, _, found = line.partition("|")
        yield bytes.fromhex(content), found


def _hex(text: str) -> str:
    return text.encode("utf-16-be", "surrogatepass").hex()
