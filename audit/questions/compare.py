"""Compares replicas: do they hold one history, and if not, from which offset do they differ.

Rule: a replica is trusted as far as its own chain is right, and no further. Equal chain hashes at
an offset prove that everything before it is equal, so the first difference is found by halving.
Logs that end at different offsets are compared up to the shorter end.
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
    """The first offset at which a replica holds another history."""

    replica: str
    other: str
    """The replica that it was compared with."""
    offset: int
    """Base offset of the first batch that differs."""
    batch: dict[str, Any]
    other_batch: dict[str, Any]
    """Both as `audit.reading.dump.batch_in_words` gives them."""


class Comparison(msgspec.Struct, frozen=True):
    """The result for several replicas."""

    common_offset: int
    """All were compared up to this offset. Before a divergence they are equal."""
    agreed: tuple[str, ...]
    """Names of the replicas with the most common history; all of them if none differs."""
    majority: bool
    """More than half of the replicas agree, so a replica that differs is the wrong one."""
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
    """Compare replicas. `reports`, by name, say how far each one is sound by itself.

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
            left_out[side.name] = f"it belongs to another cluster, {side.reader.cluster_id!r}"
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
    """The sound part of a replica."""

    def __init__(self, name: str, reader: LedgerReader, report: VerifyReport) -> None:
        self.name = name
        self.reader = reader
        # The reader reads heads only, so it may count a torn batch after the synced mark.
        self.end = min(reader.log_end, report.log_end)
        self.sound = report.ok

    def hash_at(self, offset: int) -> bytes | None:
        """Return the chain hash of the records before an offset; None if no batch ends there."""
        return self.reader.hash_at(offset)

    def overlaps(self, other: "_Side") -> bool:
        """Return whether both hold some offset."""
        start = max(self.reader.log_start, other.reader.log_start)
        return start <= min(self.end, other.end)

    def words(self, offset: int) -> dict[str, Any]:
        """Return the batch at an offset as plain values; empty if there is none."""
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
        # The two differ already where the later history begins.
        low = max(side.reader.log_start, reference.reader.log_start)
        return ReplicaDivergence(
            side.name, reference.name, low, side.words(low), reference.words(low)
        )
    # The two are equal at `low` and differ at `high`. Both offsets are ends of the reference's
    # batches, or `high` is the end of the shorter log.
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
    """Return the highest offset at which segment headers are equal, and the common end."""
    high = min(side.end, reference.end)
    start = max(side.reader.log_start, reference.reader.log_start)
    theirs = {mark.log_end: mark.head for mark in reference.reader.segment_marks()}
    low = start
    for mark in side.reader.segment_marks():
        if start <= mark.log_end < high and theirs.get(mark.log_end) == mark.head:
            low = max(low, mark.log_end)
    return low, high
