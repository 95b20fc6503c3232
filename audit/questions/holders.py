"""Who held a lock, led an election or was a member of a group, and when.

Rule: a grant lasts from the moment whose record has its token to the moment that removes its entry.
The records alone say it: an entry's record has its token, and its session's record who it is.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from audit.reading.feed import Beginning
from audit.reading.settling import Moment
from metadata.image.coordination import EntryKey
from metadata.records import (
    EndSessionRecord,
    EntryRecord,
    Record,
    RemoveEntryRecord,
    SessionEnd,
    SessionRecord,
)
from metadata.records.coordination import resource_word


class GrantPeriod(msgspec.Struct, frozen=True):
    """One grant of a group, an election or a lock."""

    resource: str
    """Such as `lock:printer`."""
    id: str
    owner: str
    """The principal of the session."""
    client_name: str
    session_id: bytes
    token: int
    from_offset: int
    from_ms: int
    until_offset: int | None = None
    """The offset at which it ended; None: it is held at the end of what was read."""
    until_ms: int | None = None
    ended_by: str = ""
    """The operation that ended it, or why its session ended; empty while it is held."""


class _Grants:
    """The grants that are held, and the sessions that are open."""

    def __init__(self, resource: str) -> None:
        self._resource = resource
        self._sessions: dict[bytes, SessionRecord] = {}
        self.held: dict[EntryKey, GrantPeriod] = {}

    def note(self, record: Record, time_ms: int) -> None:
        """Take a record that removes no entry."""
        if isinstance(record, SessionRecord):
            self._sessions[record.session_id] = record
        elif isinstance(record, EndSessionRecord):
            self._sessions.pop(record.session_id, None)
        elif isinstance(record, EntryRecord) and record.token >= 0:
            self._grant(record, time_ms)

    def _grant(self, entry: EntryRecord, time_ms: int) -> None:
        key = (entry.kind, entry.name, entry.id)
        resource = resource_word(entry.kind, entry.name)
        if self._resource in ("", resource) and key not in self.held:
            session = self._sessions.get(entry.session_id)
            self.held[key] = GrantPeriod(
                resource,
                entry.id,
                "" if session is None else session.owner,
                "" if session is None else session.client_name,
                entry.session_id,
                entry.token,
                entry.revision,
                time_ms,
            )


def held_grants(
    resource: str, moments: Iterable[Moment], beginning: Beginning | None = None
) -> Iterator[GrantPeriod]:
    """Yield the grants of a resource, such as `lock:printer`, in the order in which they ended.

    `resource` empty: of all. Those that are held at the end come last.
    """
    grants = _Grants(resource)
    if beginning is not None:
        for record in beginning.records:
            grants.note(record, beginning.time_ms)
    for moment in moments:
        reasons = {
            one.record.session_id: SessionEnd(one.record.reason).name.lower()
            for one in moment.records
            if isinstance(one.record, EndSessionRecord)
        }
        for one in moment.records:
            record = one.record
            if isinstance(record, RemoveEntryRecord):
                grant = grants.held.pop((record.kind, record.name, record.id), None)
                if grant is not None:
                    reason = reasons.get(record.session_id, one.header.provenance.operation)
                    yield msgspec.structs.replace(
                        grant,
                        until_offset=one.offset,
                        until_ms=moment.time_ms,
                        ended_by=_ENDS.get(reason, reason),
                    )
            else:
                grants.note(record, moment.time_ms)
    yield from grants.held.values()


_ENDS: Final = {
    "closed": "its session was closed",
    "expired": "its session expired",
    "revoked": "its session was revoked",
}
