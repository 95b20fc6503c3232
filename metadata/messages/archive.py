"""The reply of `POST /v1/archive/run`."""

from metadata.messages.message import Count, ReplyMessage


class RunArchiveReply(ReplyMessage, frozen=True):
    """What one controller has moved to the archive because somebody asked for it."""

    node_id: int
    place: str
    """The archive's path or URL, without secrets."""
    run: Count
    """The number of this run, since the process started; name it to wait for its end."""
    ended: bool
    """Whether the run has ended; if not, the figures are those of so far."""
    segments: Count
    """Segments that are in the archive and were removed from the node."""
    bytes: Count
    note: str = ""
    """Why no more segments move, as a sentence; empty: the run goes on."""
