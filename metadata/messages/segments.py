"""The segments of a controller's ledger: `GET /v1/segments`.

Rule: the list ends at a mark. Bytes before the mark never change, so a client that reads them by
ranges gets one log, however long it takes.
"""

from typing import Final

from metadata.messages.message import Count, ReplyMessage

SEGMENTS_LISTED_MAX: Final = 100


class SegmentDescription(ReplyMessage, frozen=True):
    """A segment that `GET /v1/segments/<baseOffset>` serves."""

    base_offset: Count
    """The offset of its first record."""
    size: Count
    """In bytes, up to the end of the list."""


class ListSegmentsReply(ReplyMessage, frozen=True):
    """Segments, ascending, and the mark at which the log ends."""

    cluster_id: str
    node_id: int
    log_end: Count
    """The offset of the next record."""
    epoch: Count
    """That of the last batch, as are the next two."""
    timestamp_ms: Count
    hash: str
    """Its chain hash, in hexadecimal digits."""
    segments: tuple[SegmentDescription, ...]
    more: bool = False
    """There are later ones: ask again with `fromBase` above the last one's base offset."""
