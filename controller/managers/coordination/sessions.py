"""Opens and ends sessions.

Rule: a session ends together with its entries, in one decision. So no entry of an ended session is
ever seen. Only the principal that opened a session may use it.
"""

from controller.config import CoordinationLimits
from controller.managers.coordination.limits import check_room
from controller.managers.coordination.queue_changes import QueueChanges
from controller.result import ControllerResult
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.image.coordination import SESSIONS, session_bytes
from metadata.messages import (
    EndSessionReply,
    EndSessionRequest,
    OpenSessionReply,
    OpenSessionRequest,
)
from metadata.plain_text import check_plain
from metadata.records import EndSessionRecord, SessionEnd, SessionRecord
from metadata.uuids import parse_uuid_of, uuid4_from, uuid_text
from runtime.randomness import Random


class SessionManager:
    """Decides about sessions."""

    def __init__(self, random: Random, limits: CoordinationLimits) -> None:
        """`random` draws ids."""
        self._random = random
        self._limits = limits

    def open(
        self, image: MetadataImage, request: OpenSessionRequest, principal: str
    ) -> ControllerResult:
        """Open a session. Raises LogbergError COORDINATION_FULL, INVALID_REQUEST."""
        check_plain("clientName", request.client_name)
        limits, state = self._limits, image.coordination
        ttl_ms = min(max(request.ttl_ms, limits.ttl_min_ms), limits.ttl_max_ms)
        session_id = uuid4_from(self._random.getrandbits(122))
        while session_id in state.sessions:
            session_id = uuid4_from(self._random.getrandbits(122))

        def at(offset: int) -> ControllerResult:
            record = SessionRecord(session_id, ttl_ms, principal, request.client_name, offset)
            check_room(state, limits, SESSIONS, 1, session_bytes(record))
            reply = OpenSessionReply(uuid_text(session_id), ttl_ms, offset, dry_run=request.dry_run)
            return ControllerResult((record,), reply, rebase=at)

        return at(image.offset)

    def end(
        self, image: MetadataImage, request: EndSessionRequest, principal: str
    ) -> ControllerResult:
        """End a session. Raises LogbergError CLUSTER_AUTHORIZATION_FAILED."""
        session_id = parse_uuid_of("sessionId", request.session_id)
        session = image.coordination.sessions.get(session_id)
        if session is not None and not request.revoke:
            check_owner(session, principal)
        reason = SessionEnd.REVOKED if request.revoke else SessionEnd.CLOSED

        def at(offset: int) -> ControllerResult:
            changes = QueueChanges(image.coordination, offset)
            if session is not None:
                _end(image, changes, session_id, reason)
            reply = EndSessionReply(session is not None, changes.revision, dry_run=request.dry_run)
            return ControllerResult(changes.records, reply, rebase=at)

        return at(image.offset)

    def expire(self, image: MetadataImage, session_id: bytes) -> ControllerResult:
        """End a session whose client is silent; nothing if it is gone."""

        def at(offset: int) -> ControllerResult:
            changes = QueueChanges(image.coordination, offset)
            if session_id in image.coordination.sessions:
                _end(image, changes, session_id, SessionEnd.EXPIRED)
            return ControllerResult(
                changes.records, reason="the session's client was silent", rebase=at
            )

        return at(image.offset)


def open_session_of(image: MetadataImage, session_id: bytes, principal: str) -> SessionRecord:
    """Return a session that is open. Raises LogbergError SESSION_LOST, or if it is another's."""
    session = image.coordination.sessions.get(session_id)
    if session is None:
        raise session_lost(session_id)
    check_owner(session, principal)
    return session


def session_lost(session_id: bytes) -> LogbergError:
    """Return the refusal of a session that is not open."""
    return LogbergError(
        ErrorCode.SESSION_LOST, f"there is no session {uuid_text(session_id)}: it has ended"
    )


def check_owner(session: SessionRecord, principal: str) -> None:
    """Refuse a principal that didn't open the session. Raises LogbergError."""
    if session.owner != principal:
        raise LogbergError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            f"session {uuid_text(session.session_id)} is not that of {principal}",
        )


def _end(
    image: MetadataImage, changes: QueueChanges, session_id: bytes, reason: SessionEnd
) -> None:
    # The own entries that wait go first: none of them may be granted on the way.
    held = [changes.entry(key) for key in image.coordination.holdings.get(session_id, ())]
    entries = sorted((e for e in held if e is not None), key=lambda entry: -entry.place)
    for entry in entries:
        changes.remove(entry)
    changes.records.append(EndSessionRecord(session_id, int(reason)))
