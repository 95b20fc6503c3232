"""Replies of a watch of one resource: `GET /v1/watch?resource=&from=&waitMs=`.

A watch asks again with `from` = `nextFrom`. Rule: each record about the resource comes once, in the
order of the log, and only after it took effect. None is left out.
"""

from metadata.messages.log import RecordInWords
from metadata.messages.message import ReplyMessage


class WatchedRecord(ReplyMessage, frozen=True):
    """One record about the resource: who changed what, when and why.

    Only whoever may read the log is told who, from where and why. For others these fields are
    empty.
    """

    offset: int
    epoch: int
    timestamp_ms: int
    record: RecordInWords
    principal: str = ""
    acted_as: str = ""
    auth_method: str = ""
    on_behalf_of: str = ""
    client_address: str = ""
    client_id: str = ""
    request_id: str = ""
    operation: str = ""
    reason: str = ""
    principal_name: str = ""
    """The name behind `principal`, without `User:`, if that is a pseudonym and the controller can
    open it. The same holds for the next field."""
    on_behalf_of_name: str = ""


class WatchReply(ReplyMessage, frozen=True):
    """The records about a resource from a place on; perhaps none."""

    resource: str
    next_from: str
    """Where the watch goes on: an offset, and for topics what a reader there must know."""
    log_start: int
    high_watermark: int
    records: tuple[WatchedRecord, ...] = ()
    epoch: int = -1
    """The epoch of the answering node."""
