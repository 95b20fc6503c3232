"""From the controllers' messages to the values of coordination."""

from collections.abc import Iterable

from coordination.backend import ResourceEntry
from coordination.types import Record, Revision, SessionId, Token
from metadata.messages.coordination import EntryDescription, KeyDescription


def record_of(key: KeyDescription) -> Record:
    """Return a key's record."""
    return Record(
        key.key,
        key.value,
        Revision(key.create_revision),
        Revision(key.mod_revision),
        key.version,
    )


def entry_of(entry: EntryDescription) -> ResourceEntry:
    """Return an entry of a queue."""
    return ResourceEntry(
        entry.id,
        entry.data,
        SessionId(entry.session_id),
        # Who waits has no token yet; the place orders the queue.
        Token(entry.token if entry.granted else entry.place),
        Revision(entry.revision),
        entry.granted,
        entry.shared,
    )


def entries_of(entries: Iterable[EntryDescription]) -> tuple[ResourceEntry, ...]:
    """Return the entries of a queue, in its order."""
    return tuple(entry_of(entry) for entry in entries)
