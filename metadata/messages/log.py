"""Reading the log. `GET /v1/log?offset=&maxBytes=&waitMs=`: a watch asks again from `nextOffset`.

Rule: batches are given as they stand on disk, committed ones only, and never from within an open
transaction's branch: a watcher sees what it may act on.
"""

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
