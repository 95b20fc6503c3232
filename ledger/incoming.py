"""The last step of a catch-up: moves fetched segments into place.

Rule: `incoming/install` is the note that everything up to its mark is fetched, verified and
durable. Renaming the manifest commits the catch-up. A start that finds the manifest at that mark
finishes the move, and repeats it after a crash. Before the commit, nothing in the ledger is
changed.
"""

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ledger.chain import LogMark
from ledger.errors import DamagedBatchError, LedgerError
from ledger.frame import CRC_BYTES, FORMAT, PREFIX, PREFIX_BYTES, finish_frame, take_frame
from ledger.gaps import Gap, change_gap
from ledger.pull import INCOMING_FOLDER, part_name
from ledger.scan import walk_heads
from ledger.segments import (
    HEADER_BYTES_MAX,
    LOG_FOLDER,
    parse_segment_header,
    segment_bases,
    segment_name,
)
from runtime.disk.interface import Disk

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger as BoundLogger

MAGIC = b"QRTJ"
NOTE_NAME = f"{INCOMING_FOLDER}/install"
LEDGER_INSTALLED = "ledger_installed"


class CatchUpNote(NamedTuple):
    """What is ready to be moved."""

    mark: LogMark
    bases: tuple[int, ...]
    """Base offsets of the fetched segments, ascending."""
    history_end: int
    """Where the history ends that this node had before; 0 if it had none."""

    def encode(self) -> bytes:
        """Return the content of `incoming/install`."""
        body = msgspec.msgpack.encode((self.mark.encode(), self.bases, self.history_end))
        length = PREFIX_BYTES + len(body) + CRC_BYTES
        return finish_frame(PREFIX.pack(MAGIC, FORMAT, 0, length) + body)

    @classmethod
    def decode(cls, data: bytes) -> "CatchUpNote":
        """Read what `encode` wrote. Raises LedgerError."""
        body = take_frame(data, 0, MAGIC, 2**31)[PREFIX_BYTES:-CRC_BYTES]
        try:
            mark, bases, history_end = msgspec.msgpack.decode(
                body, type=tuple[bytes, tuple[int, ...], int]
            )
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise LedgerError(f"{NOTE_NAME} can't be read: {error}") from None
        if not bases:
            raise LedgerError(f"{NOTE_NAME} names no segment")
        return cls(LogMark.decode(mark), bases, history_end)


def finish_catch_up(disk: Disk, mark: LogMark, log: "BoundLogger") -> bool:
    """Move fetched segments into place if they reach to `mark`. Returns whether it did."""
    try:
        note = CatchUpNote.decode(disk.read(NOTE_NAME))
    except (FileNotFoundError, LedgerError):
        return False  # not ready: the pull continues, or is dropped
    if note.mark != mark:
        if note.mark.log_end <= mark.log_end:
            drop_incoming(disk)  # the node got there by ordinary entries
        return False
    _end_own_history(disk, note)
    for base in note.bases:
        if disk.exists(part_name(base)):  # otherwise an earlier start has moved it
            disk.rename(part_name(base), f"{LOG_FOLDER}/{segment_name(base)}")
    disk.sync_folder(LOG_FOLDER)
    disk.sync_folder(INCOMING_FOLDER)
    disk.unlink(NOTE_NAME)
    disk.sync_folder(INCOMING_FOLDER)
    log.info(LEDGER_INSTALLED, log_end=mark.log_end, segments=len(note.bases))
    return True


def _end_own_history(disk: Disk, note: CatchUpNote) -> None:
    """Keep the accepted history, mark the gap after it, and remove the files after that.

    Files after `history_end` were left by an earlier incarnation. Nothing proves them, and the
    fetched history would seem to continue them.
    """
    first, end = note.bases[0], note.history_end
    bases = segment_bases(disk.list(LOG_FOLDER))
    kept = [base for base in bases if base < min(first, end)]
    if kept and end < first:
        _cut_at(disk, f"{LOG_FOLDER}/{segment_name(kept[-1])}", end)
        change_gap(disk, None, Gap(end, first))
    for base in bases:
        if end <= base < first:
            disk.unlink(f"{LOG_FOLDER}/{segment_name(base)}")
    disk.sync_folder(LOG_FOLDER)


def _cut_at(disk: Disk, path: str, end: int) -> None:
    try:
        _, position = parse_segment_header(disk.read(path, 0, HEADER_BYTES_MAX))
        for head in walk_heads(disk, path, position):
            if head.base_offset >= end:
                break
            position = head.position + head.length
    except DamagedBatchError:
        return  # older damage, which is found when somebody reads it
    file = disk.open(path)
    if position < file.size():
        file.truncate(position)
        file.sync()
    file.close()


def drop_incoming(disk: Disk) -> None:
    """Remove what a catch-up has fetched. The note that it is ready is removed first."""
    names = disk.list(INCOMING_FOLDER)
    ready = NOTE_NAME.rpartition("/")[2]
    if ready in names:
        disk.unlink(NOTE_NAME)
        disk.sync_folder(INCOMING_FOLDER)
    for name in names:
        if name != ready:
            disk.unlink(f"{INCOMING_FOLDER}/{name}")
    if names:
        disk.sync_folder(INCOMING_FOLDER)
