"""Replies with parts of the log: `GET /v1/log?offset=&maxBytes=&waitMs=`.

A watch asks again from `nextOffset`. Rule: a reply holds only committed batches, as the bytes in
the ledger, and none of an open transaction. So a watcher may act on all that it reads.
"""

from typing import Any

from metadata.messages.message import ReplyMessage


class ReadLogReply(ReplyMessage, frozen=True):
    """Batches from an offset on."""

    offset: int
    """The offset of the first batch; it may be below the one in the request."""
    next_offset: int
    """The offset for the next request."""
    log_start: int
    high_watermark: int
    batches: tuple[bytes, ...] = ()
    epoch: int = -1
    """The epoch of the answering node."""


class ReadRecordsReply(ReplyMessage, frozen=True):
    """The same with `format=json`: each batch as JSON for people."""

    offset: int
    next_offset: int
    log_start: int
    high_watermark: int
    batches: tuple[dict[str, object], ...] = ()
    epoch: int = -1


class RecordInWords(ReplyMessage, frozen=True):
    """A record as JSON for people; see `metadata.messages.records_json`."""

    type: str
    """The type's name, such as TOPIC_RECORD."""
    version: int
    data: dict[str, Any]
    redacted: tuple[str, ...] = ()
    """The fields of `data` that hold secrets and are not shown."""


class BatchInWords(ReplyMessage, frozen=True):
    """A batch as JSON for people: who changed what, when and why."""

    offset: int
    end_offset: int
    epoch: int
    timestamp_ms: int
    hash: str
    """The chain hash of the batch, in hexadecimal digits."""
    records: tuple[RecordInWords, ...]
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


class LogReply(ReplyMessage, frozen=True):
    """`ReadRecordsReply` as a client decodes it."""

    offset: int
    next_offset: int
    log_start: int
    high_watermark: int
    batches: tuple[BatchInWords, ...] = ()
    epoch: int = -1
