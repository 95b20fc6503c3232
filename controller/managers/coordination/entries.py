"""Enters, changes and removes entries of groups, elections and locks (KIP-30).

Rules: an id belongs to one session at a time. To enter again under the same id changes the data. An
entry is removed only by its own session, by the end of that session, or by a break of its grant.
"""

from collections.abc import Callable
from typing import Final

from controller.config import CoordinationLimits
from controller.managers.coordination.limits import (
    check_name,
    check_room,
    check_size,
    full,
)
from controller.managers.coordination.queue_changes import QueueChanges
from controller.managers.coordination.sessions import open_session_of
from controller.result import ControllerResult
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.image.coordination import ENTRIES, EntryKey, entry_bytes, is_granted
from metadata.messages import (
    BreakGrantReply,
    BreakGrantRequest,
    ChangeEntryRequest,
    EnterRequest,
    EntryReply,
    LeaveReply,
    LeaveRequest,
)
from metadata.records import EntryKind, EntryRecord
from metadata.uuids import parse_uuid_of, uuid_text

KINDS: Final = {kind.name.lower(): kind for kind in EntryKind}


class EntryManager:
    """Decides about entries."""

    def __init__(self, limits: CoordinationLimits) -> None:
        self._limits = limits

    def enter(
        self, image: MetadataImage, request: EnterRequest, principal: str
    ) -> ControllerResult:
        """Add an entry, or change its data. Raises LogbergError."""
        key = self._key(request)
        check_size("data", request.data, self._limits.data_bytes)
        session_id = parse_uuid_of("sessionId", request.session_id)
        open_session_of(image, session_id, principal)
        present = image.coordination.entries.get(key)
        if present is not None and present.session_id != session_id:
            raise _exists(present)
        if present is not None:
            return self._changed(image, present, request.data, dry_run=request.dry_run)
        if request.shared and key[0] != EntryKind.LOCK:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                "shared: only a lock can be shared",
                {"field": "shared"},
            )

        def write(changes: QueueChanges) -> EntryRecord:
            return changes.enter(key, session_id, request.data, shared=request.shared)

        self._check_room(image, key, session_id)
        return self._written(image, 1, None, write, dry_run=request.dry_run)

    def change(
        self, image: MetadataImage, request: ChangeEntryRequest, principal: str
    ) -> ControllerResult:
        """Change an entry's data. Raises LogbergError NOT_HELD, SESSION_LOST."""
        key = self._key(request)
        check_size("data", request.data, self._limits.data_bytes)
        session_id = parse_uuid_of("sessionId", request.session_id)
        open_session_of(image, session_id, principal)
        present = image.coordination.entries.get(key)
        if present is None or present.session_id != session_id:
            raise LogbergError(
                ErrorCode.NOT_HELD, f"this session has no entry {request.id!r} there"
            )
        return self._changed(image, present, request.data, dry_run=request.dry_run)

    def leave(
        self, image: MetadataImage, request: LeaveRequest, principal: str
    ) -> ControllerResult:
        """Remove an entry of the session. One that is not there is no error. Raises LogbergError.

        With a token it is a compare-and-delete: another grant than that one stays.
        """
        key = self._key(request)
        session_id = parse_uuid_of("sessionId", request.session_id)
        open_session_of(image, session_id, principal)
        present = image.coordination.entries.get(key)
        leaves = (
            present is not None
            and present.session_id == session_id
            and request.token in (None, present.token)
        )

        def at(offset: int) -> ControllerResult:
            changes = QueueChanges(image.coordination, offset)
            if leaves and present is not None:
                changes.remove(present)
            reply = LeaveReply(leaves, changes.revision, dry_run=request.dry_run)
            return ControllerResult(changes.records, reply, rebase=at)

        return at(image.offset)

    def break_grant(self, image: MetadataImage, request: BreakGrantRequest) -> ControllerResult:
        """Remove the entries that are granted in an election or a lock. Raises LogbergError."""
        check_name("name", request.name, self._limits.name_bytes)
        kind = KINDS[request.kind]
        if kind is EntryKind.GROUP:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                "kind: a group has no grant to break; end the member's session",
                {"field": "kind"},
            )
        granted = [e for e in image.coordination.queue((kind, request.name)) if is_granted(e)]

        def at(offset: int) -> ControllerResult:
            changes = QueueChanges(image.coordination, offset)
            for entry in reversed(granted):
                changes.remove(entry)
            reply = BreakGrantReply(bool(granted), changes.revision, dry_run=request.dry_run)
            return ControllerResult(changes.records, reply, rebase=at)

        return at(image.offset)

    def _key(self, request: EnterRequest | ChangeEntryRequest | LeaveRequest) -> EntryKey:
        check_name("name", request.name, self._limits.name_bytes)
        check_name("id", request.id, self._limits.name_bytes)
        return (int(KINDS[request.kind]), request.name, request.id)

    def _changed(
        self, image: MetadataImage, present: EntryRecord, data: bytes, *, dry_run: bool
    ) -> ControllerResult:
        if data == present.data:
            return ControllerResult((), _entry_reply(present, dry_run=dry_run))
        return self._written(
            image, 0, present, lambda changes: changes.change(present, data), dry_run=dry_run
        )

    def _written(
        self,
        image: MetadataImage,
        more: int,
        before: EntryRecord | None,
        write: Callable[[QueueChanges], EntryRecord],
        *,
        dry_run: bool,
    ) -> ControllerResult:
        def at(offset: int) -> ControllerResult:
            changes = QueueChanges(image.coordination, offset)
            entry = write(changes)
            size = entry_bytes(entry) - (0 if before is None else entry_bytes(before))
            check_room(image.coordination, self._limits, ENTRIES, more, size)
            reply = _entry_reply(entry, dry_run=dry_run)
            return ControllerResult(changes.records, reply, rebase=at)

        return at(image.offset)

    def _check_room(self, image: MetadataImage, key: EntryKey, session_id: bytes) -> None:
        state, limits = image.coordination, self._limits
        if len(state.queues.get(key[:2], ())) >= limits.entries_per_resource:
            raise full(
                f"entries of one {EntryKind(key[0]).name.lower()}", limits.entries_per_resource
            )
        if len(state.holdings.get(session_id, ())) >= limits.entries_per_session:
            raise full("entries of one session", limits.entries_per_session)


def _entry_reply(entry: EntryRecord, *, dry_run: bool) -> EntryReply:
    return EntryReply(entry.revision, entry.token, is_granted(entry), entry.place, dry_run=dry_run)


def _exists(entry: EntryRecord) -> LogbergError:
    return LogbergError(
        ErrorCode.ENTRY_EXISTS,
        f"{entry.id!r} is the entry of another session, {uuid_text(entry.session_id)}",
        {
            "sessionId": uuid_text(entry.session_id),
            "token": str(entry.token),
            "revision": str(entry.revision),
        },
    )
