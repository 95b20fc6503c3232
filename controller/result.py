"""What a decision returns: records and a reply. Deciding changes nothing.

A manager's public method reads an image and returns a `ControllerResult`. The proposer writes the
records. They change the state by replay, on this node as on every other.
"""

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

import msgspec

from metadata.image import MetadataImage
from metadata.records import Record
from quorum.api import Voter


class RoundAnswer(NamedTuple):
    """What one round of a request answered, but for the last round."""

    number: int
    """Rounds are counted from 0."""
    body: bytes


class ControllerResult(NamedTuple):
    """A decision."""

    records: Sequence[Record]
    """In the order of their replay. If there are none, nothing is written."""
    reply: msgspec.Struct | None = None
    """The caller's answer, once the records are committed. None for decisions without a caller."""
    status: int = 200
    """The HTTP status that goes with the reply."""
    reason: str = ""
    """The reason in the batch's envelope, if the caller gave none."""
    rebase: "Callable[[int], ControllerResult] | None" = None
    """Makes the result for another offset of the first record. For records that hold offsets."""
    unfinished: bool = False
    """The records are a first part, and valid by themselves. The proposer decides again for the
    rest, after other decisions. The caller gets the answer of the last part."""
    round_answer: RoundAnswer | None = None
    """With `unfinished`: it is remembered with the records, so that the request, sent again, goes
    on behind this round (`RequestedChange.rounds`)."""
    began: bool = False
    """Rounds of the same request are in the log. So the last round's answer is remembered too, even
    if it writes nothing: sent again, the request must not be executed a second time."""
    rests_on: "Callable[[MetadataImage], bool] | None" = None
    """Returns whether the records are still right in a later image. Only for records that add or
    remove whole topics: such changes may be prepared beside others (see `large_changes`)."""
    salted_hashes: tuple[bytes, ...] = ()
    """Of the records' sealed fields, in their order (`metadata.sealing`)."""
    touches: frozenset[bytes] = frozenset()
    """With `rests_on`: the ids of those topics. If another change writes a record about one of
    them in the meantime, the decision must be made again."""
    voters: tuple[Voter, ...] | None = None
    """The quorum's voters from this decision's entry on; None: they stay. The records are one small
    batch, and go into that entry (ADR 0081)."""


Decided = ControllerResult | Generator[None, None, ControllerResult]
"""A result, or a generator that yields often and returns one (see `runtime.loop.slices`)."""

Decide = Callable[[MetadataImage], Decided]
"""Decides on the pending image. Its `offset` is that of the next record. Raises LogbergError."""
