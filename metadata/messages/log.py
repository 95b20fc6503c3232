"""Reading the log. `GET /v1/log?offset=&maxBytes=&waitMs=`: a watch asks again from `nextOffset`.

Rule: batches are given as they stand on disk, committed ones only, and never from within an open
transaction's branch: a watcher sees what it may act on.
"""

from typing import Any

from metadata.messages.message import ReplyMessage


class ReadLogReply(ReplyMessage, frozen=True):
    """Batches from an offset on."""

    offset: int
    """Where the first batch begins, which may be before the offset that was asked for."""
    next_offset: int
    """Where to go on."""
    log_start: int
    high_watermark: int
    batches: tuple[bytes, ...] = ()
    epoch: int = -1
    """Of the answering node."""


class ReadRecordsReply(ReplyMessage, frozen=True):
    """The same for people: with `format=json`, each batch in words."""

    offset: int
    next_offset: int
    log_start: int
    high_watermark: int
    batches: tuple[dict[str, object], ...] = ()
    epoch: int = -1


class RecordInWords(ReplyMessage, frozen=True):
    """A record; see `metadata.messages.records_json`."""

    type: str
    """Such as TOPIC_RECORD."""
    version: int
    data: dict[str, Any]
    redacted: tuple[str, ...] = ()
    """The fields of `data` that hold secrets and are not shown."""


class BatchInWords(ReplyMessage, frozen=True):
    """A batch: who changed what, when and why."""

    offset: int
    end_offset: int
    epoch: int
    timestamp_ms: int
    hash: str
    """Of the batch, in hexadecimal digits."""
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


class LogReply(ReplyMessage, frozen=True):
    """`ReadRecordsReply` as a client reads it."""

    offset: int
    next_offset: int
    log_start: int
    high_watermark: int
    batches: tuple[BatchInWords, ...] = ()
    epoch: int = -1
