"""Declarations of a family: its tables, and the methods of its delta that replay records.

Rule: each family of the image declares both in its own module. A table is a map of which every
entry can be written as records. A family's delta has an `Overlay` for each of its tables, under the
name of the table's map.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

from metadata.records import Record

D = TypeVar("D")
R = TypeVar("R", bound=Record)

Replay = Callable[[D, R, int], None]
_KINDS: Final = "_replayed_kinds"


class ImageTable(NamedTuple):
    """A map of an image, of which every entry can be written as records."""

    name: str
    """The table's name in changes and differences."""
    family: str
    """The attribute of `MetadataImage` that holds the family."""
    map: str
    """The attribute of the family's image, and of its delta, that holds the map."""
    records: Callable[[Any, Any], tuple[Record, ...]]
    """Takes a key and its value, and returns the records that restore them."""
    kind: str
    """The word for an entry in output for people: `broker` in `broker:7`."""
    named_by: tuple[str, ...] = ()
    """The fields of the record that are part of the entry's name already."""
    controllers_only: bool = False
    """True: brokers don't hold the table."""


def itself(_key: object, record: Record) -> tuple[Record, ...]:
    """Return the value of an entry as its records, for a table whose values are records."""
    return (record,)


def replays(*kinds: type[R]) -> Callable[[Replay[D, R]], Replay[D, R]]:
    """Mark the method of a delta that replays records of these classes.

    The method gets a record and its offset.
    """

    def mark(method: Replay[D, R]) -> Replay[D, R]:
        setattr(method, _KINDS, kinds)
        return method

    return mark


def replayed_by(delta: type[Any]) -> dict[type[Record], str]:
    """Return the name of the marked method of a delta's class, by the record class it replays."""
    return {
        kind: name for name, method in vars(delta).items() for kind in getattr(method, _KINDS, ())
    }
