"""The list of a controller's snapshots: `GET /v1/snapshots`.

Rule: the list is the answering node's own. Another node may have others, of the same images.
"""

from typing import Final

from metadata.messages.message import Count, ReplyMessage

SNAPSHOTS_LISTED_MAX: Final = 100


class SnapshotDescription(ReplyMessage, frozen=True):
    """A snapshot that `GET /v1/snapshots/<id>` serves."""

    id: str
    offset: Count
    """The end offset: it holds the records before it."""
    epoch: Count
    """The epoch of the last batch in it."""
    size: Count
    """In bytes."""


class ListSnapshotsReply(ReplyMessage, frozen=True):
    """Snapshots, the newest first."""

    snapshots: tuple[SnapshotDescription, ...]
    more: bool = False
    """There are older ones: ask again with `upTo` below the last one's offset."""
