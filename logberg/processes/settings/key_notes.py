"""What a node logs at its start about the keys of its server.properties."""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from structlog.typing import FilteringBoundLogger


class NoteKind(Enum):
    """What is to be said about a key."""

    IGNORED = "Kafka knows the key, and it means nothing to Logberg"
    UNKNOWN = "nobody knows the key"
    DUPLICATE = "the key stands there again"


class KeyNote(NamedTuple):
    """Something about one key."""

    kind: NoteKind
    key: str
    place: str
    """Where it stands, such as `server.properties, line 3`."""
    why: str


def log_notes(notes: Iterable[KeyNote], log: FilteringBoundLogger) -> None:
    """Log one line for each note. No line has a value: it may be a secret."""
    for note in notes:
        match note.kind:
            case NoteKind.IGNORED:
                log.info("kafka_key_ignored", key=note.key, place=note.place, why=note.why)
            case NoteKind.UNKNOWN:
                log.warning("kafka_key_unknown", key=note.key, place=note.place, why=note.why)
            case NoteKind.DUPLICATE:
                log.warning("kafka_key_duplicate", key=note.key, place=note.place, why=note.why)
