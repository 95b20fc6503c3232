"""Many changes in one request: `POST /v1/changes`.

Rule: each change is made as if it had come alone, with its own request id, provenance, quota and
outcome. The request is not atomic: one change may be made and the next one refused. The controller
submits them in order. A client joins changes that it makes at the same time, because a request
costs more than a small change.
"""

from typing import Annotated, Final

from msgspec import Meta, Raw, field

from metadata.messages.message import Count, ReplyMessage, RequestMessage

CHANGES_PATH: Final = "/v1/changes"
CHANGES_MAX: Final = 1_000
"""The most changes in one request. Their bodies together have the limits of one request."""


class JoinedChange(RequestMessage, frozen=True):
    """One of the changes. A field that is None has the value of the request's own header."""

    method: str
    path: str
    """As in the first line of a request, with the parameters after `?`."""
    body: Raw = field(default_factory=Raw)
    """The message of that route, in the same format as the request. Absent: the route has none."""
    request_id: str | None = None
    """A UUIDv7, as in the header x-logberg-request-id. None: the controller draws one."""
    reason: str | None = None
    client_id: str | None = None
    expect_offset: Count | None = None


class JoinedChangesRequest(RequestMessage, frozen=True):
    """Make these changes."""

    changes: Annotated[tuple[JoinedChange, ...], Meta(min_length=1, max_length=CHANGES_MAX)]
    wait_ms: Count | None = None
    """How long to wait for outcomes. A change without one by then gets REQUEST_TIMED_OUT, and its
    outcome is unknown. None: as long as for a change that comes alone."""


class ChangeOutcome(ReplyMessage, frozen=True):
    """What one change came to."""

    status: int
    """The HTTP status that the change would have had alone."""
    retry_after_s: int | None
    """As in the header retry-after."""
    body: Raw
    """The route's reply, or an `ErrorReply`; in the format of the whole reply."""


class JoinedChangesReply(ReplyMessage, frozen=True):
    """The outcomes, in the order of the changes."""

    outcomes: tuple[ChangeOutcome, ...]
