"""Reads the closed segments of a running journal, to find damage before the next start does.

Rule: a scrub changes nothing and doubts nothing in memory. It reports what the next start would
find.
"""

from collections.abc import Callable, Generator

from quorum.journal.damage import DamagedError
from quorum.journal.frames import JournalFrameReader
from quorum.journal.identity import JournalIdentity, read_opening
from quorum.journal.segments import JournalSegment
from runtime.disk.interface import Disk

_STEP_BYTES = 128 * 1024
_READ_BYTES = 1024 * 1024
"""Bytes that are read at a time: half a millisecond. They are verified in smaller steps."""


def scrub_segments(
    disk: Disk, identity: JournalIdentity, closed: Callable[[], list[tuple[JournalSegment, int]]]
) -> Generator[int, None, None]:
    """Read every closed segment; yields the bytes of each step. Raises DamagedError."""
    sequence = -1
    while True:
        # Look again before each segment: a compaction may have removed some.
        left = [item for item in closed() if item[0].sequence > sequence]
        if not left:
            return
        segment, end = left[0]
        sequence = segment.sequence
        try:
            yield from _scrub(disk, identity, segment, end)
        except (DamagedError, OSError) as error:
            if any(other.sequence == sequence for other, _ in closed()):
                raise DamagedError(f"{segment.name} {error}") from None


def _scrub(
    disk: Disk, identity: JournalIdentity, segment: JournalSegment, end: int
) -> Generator[int, None, None]:
    """Verify one segment up to the position where the next one begins."""
    data = yield from _whole(disk, segment.name)
    opening = read_opening(segment.name, data)
    if opening is None or opening.identity != identity or opening.base != segment.base:
        raise DamagedError("is damaged at byte 0: its first frame is bad")
    shift = segment.base - opening.size
    reader = JournalFrameReader(data, opening.size, shift, identity.seed(segment.sequence))
    stepped = 0
    for frame in reader:
        if frame.end >= end:
            break
        if reader.offset - stepped >= _STEP_BYTES:
            yield reader.offset - stepped
            stepped = reader.offset
    if reader.offset + shift < end:
        what = reader.problem or "the file is too short"
        raise DamagedError(f"is damaged at byte {reader.offset}: {what}")
    yield reader.offset - stepped


def _whole(disk: Disk, name: str) -> Generator[int, None, bytes]:
    """Read a file in steps. They yield 0, since its bytes count when they are verified."""
    pieces: list[bytes] = []
    while piece := disk.read(name, _READ_BYTES * len(pieces), _READ_BYTES):
        pieces.append(piece)
        yield 0
    return b"".join(pieces)
