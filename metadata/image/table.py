"""Tables: the maps of an image; and which method of a delta replays which record.

Rule: a family of the image says both itself, in its own module. A table is a map whose every entry
is told by records. A family's delta has an `Overlay` under the name of each of its tables.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

from metadata.records import Record

D = TypeVar("D")
R = TypeVar("R", bound=Record)

Replay = Callable[[D, R, int], None]
_KINDS: Final = "_replayed_kinds"


class ImageTable(NamedTuple):
    """A map of an image that is told by records."""

    name: str
    """How changes and differences call it."""
    family: str
    """The image's attribute."""
    map: str
    """The attribute of the family's image, and of its delta."""
    records: Callable[[Any, Any], tuple[Record, ...]]
    """From a key and its value to the records that restore it."""
    kind: str
    """What people call an entry: `broker` for `broker:7`."""
    named_by: tuple[str, ...] = ()
    """Fields of the record that the entry's name says already."""
    controllers_only: bool = False


def itself(_key: object, record: Record) -> tuple[Record, ...]:
    """Return the records of a table whose values are records."""
    return (record,)


def replays(*kinds: type[R]) -> Callable[[Replay[D, R]], Replay[D, R]]:
    """Mark the method of a delta that replays records of these classes, with their offsets."""

    def mark(method: Replay[D, R]) -> Replay[D, R]:
        setattr(method, _KINDS, kinds)
        return method

    return mark


def replayed_by(delta: type[Any]) -> dict[type[Record], str]:
    """Return the names of the marked methods of a delta's class, by the records they replay."""
    return {
        kind: name for name, method in vars(delta).items() for kind in getattr(method, _KINDS, ())
    }
