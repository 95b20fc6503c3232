"""What an index answers: records that were found, entries of a state, differences, versions."""

from typing import Any

import msgspec

Fields = dict[str, Any]


class Caused(msgspec.Struct, frozen=True, rename="camel"):
    """A batch: when, who, what for."""

    base: int
    end: int
    epoch: int
    time_ms: int
    principal: str
    acted_as: str
    on_behalf_of: str
    auth_method: str
    client_address: str
    client_id: str
    operation: str
    reason: str
    request_id: str


class IndexedRecord(msgspec.Struct, frozen=True, rename="camel"):
    """A record that was found."""

    offset: int
    type: str
    """As `audit.questions.search.type_name` returns it."""
    subjects: tuple[str, ...]
    outcome: str
    """`settled`, `aborted` or `open`."""
    cause: Caused


class IndexedEntry(msgspec.Struct, frozen=True, rename="camel"):
    """An entry of a state."""

    thing: int
    """The entry's number in the index."""
    table: str
    name: str
    fields: Fields


class IndexedDifference(msgspec.Struct, frozen=True, rename="camel"):
    """An entry that differs between two moments."""

    thing: int
    table: str
    name: str
    kind: str
    """`created`, `changed` or `removed`."""
    fields: dict[str, tuple[Any, Any]]
    """Before and after of each field that differs; None: it is not there."""


class IndexedVersion(msgspec.Struct, frozen=True, rename="camel"):
    """A value of an entry, from an offset on."""

    at: int
    """The end of the batch that set it."""
    kind: str
    """`created`, `changed` or `removed`; `kept` if the fields are as before."""
    fields: dict[str, tuple[Any, Any]]
    """Before and after of each field that differs."""
    cause: Caused | None
    """None: the log begins with this value."""


class IndexPage(msgspec.Struct, frozen=True, rename="camel"):
    """Some of the answers, and where the next ones begin."""

    items: list[Any]
    next: str = ""
    """Passed as `after` for the next page; empty: this is the last one."""
