"""Replicas held against each other: do they tell one history, and where not, from which offset.

Rule: each is believed as far as its own chain is right, and no further; then equal chain hashes at
an offset make everything before it equal. So the first difference is found by halving, and said in
the words of both sides. Logs that end at different moments are compared up to the shorter end.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from audit.places.replicas import Replica
from audit.questions.verification import sound_part
from audit.reading.dump import batch_in_words
from ledger.errors import LedgerError
from ledger.reader import LedgerReader
from ledger.verify import VerifyReport
from metadata.codec import RecordDecodeError


class ReplicaDivergence(msgspec.Struct, frozen=True):
    """The first offset from which a replica tells another history."""

    replica: str
    other: str
    """Which it was held against."""
    offset: int
    """Base offset of the first batch that differs."""
    batch: dict[str, Any]
    other_batch: dict[str, Any]
    """In words."""


class Comparison(msgspec.Struct, frozen=True):
    """Several replicas, compared."""

    common_offset: int
    """Up to which all were compared; below a divergence they are equal."""
    agreed: tuple[str, ...]
    """Names of those that tell the history that most tell; all where nobody differs."""
    majority: bool
    """More than half tell it: who differs is the one that is wrong."""
    divergences: tuple[ReplicaDivergence, ...]
    left_out: dict[str, str]
    """Replicas that could not be compared, and why."""

    @property
    def problem(self) -> str:
        """The first difference, or why a replica was left out; empty when all of them agree."""
        if self.divergences:
            return self.sentence(min(self.divergences, key=lambda found: found.offset))
        return next((f"{name}: {why}" for name, why in self.left_out.items()), "")

    def sentence(self, found: ReplicaDivergence) -> str:
        """Say where a replica differs, and whether a majority is against it."""
        judged = (
            f"{len(self.agreed)} logs agree against it"
            if self.majority
            else "there is no majority to say which one is right"
        )
        return f"{found.replica} differs from {found.other} from offset {found.offset} on; {judged}"


def compare(replicas: Sequence[Replica], reports: Mapping[str, VerifyReport]) -> Comparison:
    """Compare replicas by name; `reports` say how far each is right by itself.

    Raises LedgerError, OSError.
    """
    left_out: dict[str, str] = {}
    sides: list[_Side] = []
    for replica in replicas:
        side = _open(replica, reports.get(replica.name), left_out)
        if side is not None:
            sides.append(side)
    cluster = Counter(side.reader.cluster_id for side in sides).most_common(1)
    for side in sides:
        if side.reader.cluster_id != cluster[0][0]:
            left_out[side.name] = f"it is of cluster {side.reader.cluster_id!r}, not the same one"
    sides = [side for side in sides if side.name not in left_out]
    if not sides:
        return Comparison(0, (), False, (), left_out)
    whole = [side for side in sides if side.sound] or sides
    common = min(side.end for side in whole)
    votes = Counter(side.hash_at(common) for side in whole)
    favourite, _ = votes.most_common(1)[0]
    reference = next(side for side in whole if side.hash_at(common) == favourite)
    divergences = []
    agreed = []
    for side in sides:
        if not side.overlaps(reference):
            left_out[side.name] = f"it has no offset in common with {reference.name}"
            continue
        found = None if side is reference else _first_difference(side, reference)
        if found is None:
            agreed.append(side.name)
        else:
            divergences.append(found)
    return Comparison(
        common_offset=common,
        agreed=tuple(agreed),
        majority=2 * len(agreed) > len(agreed) + len(divergences),
        divergences=tuple(divergences),
        left_out=left_out,
    )


class _Side:
    """A replica as far as it can be believed."""

    def __init__(self, name: str, reader: LedgerReader, report: VerifyReport) -> None:
        self.name = name
        self.reader = reader
        # The reader goes by heads. It may see a batch that was never synced and isn't whole.
        self.end = min(reader.log_end, report.log_end)
        self.sound = report.ok

    def hash_at(self, offset: int) -> bytes | None:
        """The chain hash of the records before an offset; None where no batch ends."""
        return self.reader.hash_at(offset)

    def overlaps(self, other: "_Side") -> bool:
        """Tell whether there is an offset at which both can be asked."""
        start = max(self.reader.log_start, other.reader.log_start)
        return start <= min(self.end, other.end)

    def words(self, offset: int) -> dict[str, Any]:
        """The batch at an offset; nothing where there is none."""
        if not self.reader.log_start <= offset < self.end:
            return {}
        batch = self.reader.batch_at(offset)
        try:
            return batch_in_words(batch)
        except RecordDecodeError as error:
            header = batch.header
            return {
                "baseOffset": header.base_offset,
                "count": header.count,
                "hash": batch.hash.hex(),
                "unreadable": str(error),
            }


def _open(replica: Replica, report: VerifyReport | None, left_out: dict[str, str]) -> _Side | None:
    if report is None:
        left_out[replica.name] = "its log can't be read"
        return None
    try:
        reader = sound_part(replica, report)
    except LedgerError as error:
        left_out[replica.name] = str(error)
        return None
    return _Side(replica.name, reader, report)


def _first_difference(side: _Side, reference: _Side) -> ReplicaDivergence | None:
    low, high = _bracket(side, reference)
    if side.hash_at(high) == reference.hash_at(high):
        return None
    if low == high or side.hash_at(low) != reference.hash_at(low):
        # Where one's history begins the other's is different already.
        low = max(side.reader.log_start, reference.reader.log_start)
        return ReplicaDivergence(
            side.name, reference.name, low, side.words(low), reference.words(low)
        )
    # Equal at `low`, different at `high`; both are ends of the reference's batches, or high the
    # shorter one's end.
    while True:
        batch = reference.reader.batch_at((low + high) // 2)
        start, end = batch.header.base_offset, batch.header.end_offset
        if start > low:
            if side.hash_at(start) == reference.hash_at(start):
                low = start
            else:
                high = start
        elif end >= high or side.hash_at(end) != batch.hash:
            return ReplicaDivergence(
                side.name, reference.name, low, side.words(low), reference.words(low)
            )
        else:
            low = end


def _bracket(side: _Side, reference: _Side) -> tuple[int, int]:
    """Return an offset where both are equal, as high as headers show, and the common end."""
    high = min(side.end, reference.end)
    start = max(side.reader.log_start, reference.reader.log_start)
    theirs = {mark.log_end: mark.head for mark in reference.reader.segment_marks()}
    low = start
    for mark in side.reader.segment_marks():
        if start <= mark.log_end < high and theirs.get(mark.log_end) == mark.head:
            low = max(low, mark.log_end)
    return low, high
