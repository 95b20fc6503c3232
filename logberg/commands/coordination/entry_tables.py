"""Entries of groups, elections and locks as tables, and bytes as text."""

from base64 import b64encode
from collections.abc import Iterable
from itertools import groupby

from logberg.cli.output import Sheet, table
from metadata.messages.coordination import EntryDescription


def text_of(data: bytes) -> str:
    """Return data as people read it: its text, or `base64:` and its base64."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"base64:{b64encode(data).decode()}"


def queue_table(entries: Iterable[EntryDescription], granted: str, waiting: str) -> Sheet:
    """Return the entries of one resource in order; the words say what each of them is."""
    return table(
        ["id", "is", "token", "session", "since revision", "data"],
        [
            (
                entry.id,
                f"{granted}, shared"
                if entry.granted and entry.shared
                else granted
                if entry.granted
                else waiting,
                entry.token if entry.granted else "-",
                entry.session_id,
                entry.place,
                text_of(entry.data) or "-",
            )
            for entry in entries
        ],
    )


def by_name(entries: Iterable[EntryDescription]) -> list[tuple[str, list[EntryDescription]]]:
    """Divide the entries of one kind by their resource; each has the order of its queue."""
    ordered = sorted(entries, key=lambda entry: (entry.name, entry.place))
    return [(name, list(each)) for name, each in groupby(ordered, key=lambda entry: entry.name)]


def granted_ids(entries: Iterable[EntryDescription]) -> str:
    """Return the ids of those that are granted."""
    return ", ".join(entry.id for entry in entries if entry.granted) or "none"
