"""What deciding yields: records and a reply, and nothing changed.

Rule: a manager's public method reads an image and returns a `ControllerResult`. The records are
written by the proposer and change the state by replay, here as on every other node.
"""

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

import msgspec

from metadata.image import MetadataImage
from metadata.records import Record


class ControllerResult(NamedTuple):
    """A decision."""

    records: Sequence[Record]
    """In the order in which they are to be replayed; none: nothing is written."""
    reply: msgspec.Struct | None = None
    """What the caller is told once the records are committed; None for internal decisions."""
    status: int = 200
    """The HTTP status that goes with the reply."""
    reason: str = ""
    """Why, for the batch's envelope, when the caller gave no reason."""
    rebase: "Callable[[int], ControllerResult] | None" = None
    """Decide again for another offset of the first record; for records that hold offsets."""
    unfinished: bool = False
    """A first part of what is to be done, and valid by itself: decide again for the rest, when
    others had their turn. The answer is that of the last part."""
    rests_on: "Callable[[MetadataImage], bool] | None" = None
    """Tell whether the records would still be right in a later image. Only for records that add or
    remove whole topics: these may be worked out beside other changes (see `large_changes`)."""
    touches: frozenset[bytes] = frozenset()
    """With `rests_on`: the ids of those topics. A record about one of them that is written
    meanwhile makes the decision void."""


Decided = ControllerResult | Generator[None, None, ControllerResult]
"""A decision, or the work towards one that yields often (see `runtime.slices`)."""

Decide = Callable[[MetadataImage], Decided]
"""Decides on the pending image, whose `offset` is the next record's. Raises LogbergError."""
