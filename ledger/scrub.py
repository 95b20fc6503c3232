"""Reads a segment slowly, to find out whether it is still sound.

Rule: `SegmentChecker` checks it, as it checks every segment. It must also end in the chain hash
that the next segment names. A scrub changes nothing.
"""

from collections.abc import Generator
from itertools import pairwise

from ledger.catalogue import Catalogue, Segment
from ledger.chain import LogMark
from ledger.checker import PIECE_BYTES, BadSegmentError, SegmentChecker
from ledger.errors import DamagedLedgerError, LedgerError
from runtime.disk.interface import Disk


def next_closed(catalogue: Catalogue, from_offset: int) -> tuple[Segment, Segment] | None:
    """Return the first closed segment at or after an offset, and the segment after it."""
    run = catalogue.run
    for segment, after in pairwise(run):
        if segment.base_offset >= from_offset:
            return segment, after
    return None


def scrub_segment(
    disk: Disk, cluster_id: str, segment: Segment, end: LogMark
) -> Generator[int, None, None]:
    """Read a segment up to `end`; yields the bytes of each step. Raises DamagedLedgerError.

    For a closed segment, `end` is the mark in the header of the next one.
    """
    base, path = segment.base_offset, segment.path
    checker = SegmentChecker(cluster_id, base, None, end.log_end)
    try:
        yield from _read(disk, path, checker)
        _must_end_in(checker, end.head)
    except BadSegmentError as error:
        raise DamagedLedgerError(
            path, error.position, error.offset, error.reason, base_offset=base
        ) from None
    except (LedgerError, OSError) as error:
        if segment.path == path:
            raise DamagedLedgerError(
                path, checker.position, checker.mark.log_end, str(error), base_offset=base
            ) from None
        # The segment was moved to the archive meanwhile. The next pass finds it there.


def _read(disk: Disk, path: str, checker: SegmentChecker) -> Generator[int, None, None]:
    position = 0
    while not checker.stopped:
        piece = disk.read(path, position, PIECE_BYTES)
        if not piece:
            raise BadSegmentError(position, checker.mark.log_end, "the file ends too early")
        checker.feed(piece)
        position += len(piece)
        yield len(piece)


def _must_end_in(checker: SegmentChecker, head: bytes) -> None:
    if checker.mark.head != head:
        reason = "it does not end in the chain hash that what follows it continues"
        raise BadSegmentError(checker.position, checker.mark.log_end, reason)
