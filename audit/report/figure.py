"""A drawing with its title, its caption and what its colours mean.

Rule: what is normal is grey. Only what is bad has a colour, and it differs in height or in place
too, so nobody needs to see colours.
"""

from typing import Final, NamedTuple

from markupsafe import Markup

_INSET: Final = 0.07
"""The part of a piece that stays free at each side of its bar."""
LONGEST_NAME: Final = 22
"""Characters of a lane's name; longer names are cut."""


class Figure(NamedTuple):
    """A picture on the page."""

    title: str
    drawing: Markup
    caption: str = ""
    key: tuple[tuple[str, str], ...] = ()
    """What the colours mean: words with the class of the colour."""
    names: tuple[str, ...] = ()
    """The names of its lanes, from above."""


def inset(span: tuple[int, int]) -> tuple[int, int]:
    """Return a piece's bar, a little narrower than the piece."""
    begin, end = span
    free = int((end - begin) * _INSET)
    return begin + free, end - free


def lane_name(words: str) -> str:
    """Cut a name that is too long to stand beside its lane."""
    if len(words) <= LONGEST_NAME:
        return words
    return words[: LONGEST_NAME - 1] + "\N{HORIZONTAL ELLIPSIS}"
