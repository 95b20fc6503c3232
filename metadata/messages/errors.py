"""The body of an error reply.

Rule: every answer whose status isn't 200 has an `ErrorReply` as its body. The answer to a
MetadataFetch has one in its field `error` instead (see `metadata.messages.fetch`).
"""

import msgspec

from metadata.errors import ErrorCode, Fault, LogbergError
from metadata.messages.message import ReplyMessage


class ErrorReply(ReplyMessage, frozen=True):
    """Why a request failed."""

    code: str
    """A name of `ErrorCode`; a newer node may send a name that we don't know."""
    message: str
    """A sentence: what is wrong, and what to do."""
    whose_fault: str = Fault.SERVER.value
    """client, server or cluster."""
    retriable: bool = False
    leader_id: int | None = None
    leader_epoch: int = -1
    """The epoch of the answering node; -1: unknown."""
    leader_url: str | None = None
    """The leader's URL; null: unknown."""
    request_id: str | None = None
    server_time_ms: int | None = None
    """The leader's time in ms since 1970; only with REQUEST_FROM_FUTURE and REQUEST_EXPIRED."""
    retry_after_ms: int | None = None
    """After how many ms to ask the same node again; null: ask another node at once."""
    details: dict[str, str] = msgspec.field(default_factory=dict)
    """Particulars for programs, by camelCase name."""

    def known_code(self) -> ErrorCode:
        """Return the code, or UNKNOWN_SERVER_ERROR for one that this software doesn't know."""
        try:
            return ErrorCode(self.code)
        except ValueError:
            return ErrorCode.UNKNOWN_SERVER_ERROR


def error_reply(
    error: LogbergError,
    *,
    leader_id: int | None = None,
    leader_epoch: int = -1,
    leader_url: str | None = None,
    request_id: str | None = None,
    server_time_ms: int | None = None,
    retry_after_ms: int | None = None,
) -> ErrorReply:
    """Return the reply body for an exception; its HTTP status is `error.code.status`."""
    return ErrorReply(
        code=error.code.value,
        message=error.message,
        whose_fault=error.code.fault.value,
        retriable=error.code.retriable,
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        leader_url=leader_url,
        request_id=request_id,
        server_time_ms=server_time_ms,
        retry_after_ms=error.retry_after_ms or retry_after_ms,
        details=dict(error.details),
    )


def with_leader(
    reply: ErrorReply, leader_id: int | None, leader_epoch: int, leader_url: str | None
) -> ErrorReply:
    """Return an error with the leader added."""
    return msgspec.structs.replace(
        reply, leader_id=leader_id, leader_epoch=leader_epoch, leader_url=leader_url
    )
