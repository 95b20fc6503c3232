"""A change that a client is about to make, alone or with others in one request.

Rule: each change keeps its request id, its deadline and its outcome, however it is sent. Only short
changes are joined, because a reply waits for the slowest of them: creations, deletions of one
topic, configs, access control, quotas, credentials, tokens.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import msgspec

from logberg.client.client_errors import ClientError
from metadata.errors import ErrorCode
from metadata.messages.joined_changes import CHANGES_MAX, ChangeOutcome, JoinedChangesReply

WAIT_MS: Final = 1_000
"""After this time the controller answers with the outcomes that it has."""
REASON: Final = "x-logberg-reason"
TRACEPARENT: Final = "traceparent"
_SHORT_BYTES: Final = 16 * 1024
_SHORT: Final = re.compile(
    "POST /v1/(topics|partitions|acls|quotas|users/scram|tokens(/.*)?|producer-ids)"
    "|DELETE /v1/(acls|topics/.+)|PATCH /v1/configs(/.*)?"
)


class ChangeHeaders(NamedTuple):
    """What a change says beside its body."""

    request_id: str
    reason: str = ""
    expect_offset: int | None = None
    traceparent: str = ""
    """Names the change's span (W3C); empty: it is not traced."""

    def alone(self) -> dict[str, str]:
        """Return the headers of a request that has only this change."""
        headers = {"x-logberg-request-id": self.request_id}
        if self.reason:
            headers[REASON] = self.reason
        if self.expect_offset is not None:
            headers["x-logberg-expect-offset"] = str(self.expect_offset)
        if self.traceparent:
            headers[TRACEPARENT] = self.traceparent
        return headers


class WaitingChange:
    """A change, and the future that gets its reply or its error."""

    __slots__ = (
        "body",
        "headers",
        "joined_max",
        "method",
        "outcome",
        "path",
        "query",
        "reply",
        "target",
        "until",
    )

    def __init__(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes | None,
        headers: ChangeHeaders,
        reply: type[Any],
        until: float,
    ) -> None:
        """`until`: its deadline, in the loop's time."""
        self.method = method
        self.path = path
        self.query = query
        self.target = f"{path}?{urlencode(query)}" if query else path
        self.body = body
        self.headers = headers
        self.reply = reply
        self.until = until
        self.outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.joined_max = CHANGES_MAX
        """How many changes its next request may have."""

    def encoded(self) -> "_Encoded":
        """Return the change as a part of a request."""
        request_id, reason, expect_offset, _ = self.headers
        body = msgspec.UNSET if self.body is None else msgspec.Raw(self.body)
        return _Encoded(
            self.method,
            self.target,
            request_id,
            body,
            reason or msgspec.UNSET,
            msgspec.UNSET if expect_offset is None else expect_offset,
        )


class _Encoded(msgspec.Struct, rename="camel", omit_defaults=True):
    """As `metadata.messages.joined_changes.JoinedChange`, without what is not given."""

    method: str
    path: str
    request_id: str
    body: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    reason: str | msgspec.UnsetType = msgspec.UNSET
    expect_offset: int | msgspec.UnsetType = msgspec.UNSET


class _EncodedRequest(msgspec.Struct, rename="camel"):
    changes: list[_Encoded]
    wait_ms: int = WAIT_MS


def encoded_request(changes: Iterable[WaitingChange]) -> bytes:
    """Return the body of a request that has these changes."""
    return msgspec.json.encode(_EncodedRequest([change.encoded() for change in changes]))


def read_outcomes(body: bytes, url: str, count: int) -> tuple[ChangeOutcome, ...]:
    """Return the outcomes in the reply. Raises ClientError for another reply than ours."""
    try:
        outcomes = msgspec.json.decode(body, type=JoinedChangesReply).outcomes
        problem = f"{len(outcomes)} outcomes of {count} changes"
        if len(outcomes) == count:
            return outcomes
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = str(error)
    # The changes may have been made all the same.
    code = ErrorCode.UNKNOWN_SERVER_ERROR.value
    raise ClientError(code, f"{url} did not answer for each change: {problem}", 200)


@lru_cache(maxsize=1024)
def _is_short_kind(method: str, path: str) -> bool:
    return _SHORT.fullmatch(f"{method} {path}") is not None


def is_short(method: str, path: str, body: bytes | None) -> bool:
    """Whether a change may wait for others, and others for it."""
    return _is_short_kind(method, path) and (body is None or len(body) <= _SHORT_BYTES)
