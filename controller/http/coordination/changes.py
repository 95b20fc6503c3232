"""The routes of coordination that change something: each request's decision."""

from collections.abc import Callable
from typing import Any

from controller.http.clients.asked import Asked
from controller.leader.parts import LeaderParts
from controller.leader.requested_change import RequestedChange
from controller.result import ControllerResult
from metadata.image import MetadataImage
from metadata.messages import (
    BreakGrantReply,
    CommitReply,
    EndSessionReply,
    EntryReply,
    LeaveReply,
    OpenSessionReply,
)
from metadata.messages.wire import canonical


def open_session(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/coordination/sessions`. Raises LogbergError."""
    return _change(
        leader, asked, "OpenSession", OpenSessionReply, leader.coordination.sessions.open
    )


def end_session(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/coordination/sessions/end`. Raises LogbergError."""
    return _change(leader, asked, "EndSession", EndSessionReply, leader.coordination.sessions.end)


def enter(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/coordination/entries`. Raises LogbergError."""
    return _change(leader, asked, "Enter", EntryReply, leader.coordination.entries.enter)


def change_entry(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/coordination/entries/change`. Raises LogbergError."""
    return _change(leader, asked, "ChangeEntry", EntryReply, leader.coordination.entries.change)


def leave(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/coordination/entries/leave`. Raises LogbergError."""
    return _change(leader, asked, "Leave", LeaveReply, leader.coordination.entries.leave)


def break_grant(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/coordination/entries/break`."""
    message, entries = asked.message, leader.coordination.entries
    return RequestedChange.of(
        message, "BreakGrant", BreakGrantReply, lambda image: entries.break_grant(image, message)
    )


def commit_keys(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/coordination/commit`. Raises LogbergError."""
    return _change(leader, asked, "CommitKeys", CommitReply, leader.coordination.keys.commit)


def _change(
    leader: LeaderParts,
    asked: Asked,
    operation: str,
    reply_type: type[Any],
    decide: Callable[[MetadataImage, Any, str], ControllerResult],
) -> RequestedChange:
    """Return the change of a request that is decided for its principal. Raises LogbergError."""
    message = asked.message
    principal = leader.changes.asks_for(asked.request)
    return RequestedChange(
        operation=operation,
        # The same request of another principal is another request.
        meaning=lambda: principal.encode() + b"\0" + canonical(message),
        reply_type=reply_type,
        decide=lambda image: decide(image, message, principal),
        dry_run=message.dry_run,
    )
