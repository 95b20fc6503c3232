"""A node's folder together with the archive that holds its oldest segments.

Rule: the archive's segments appear in `archive/`, as if they lay there. Each is read as a whole,
and is used only if its bytes are those of the receipt. Memory holds the two that were read last. If
the archive can't be read, reading that part fails with a sentence; the rest is read as before.
"""

import os
from collections import OrderedDict
from contextlib import suppress
from hashlib import sha256
from typing import Final

from audit.places.remote import without_secrets
from audit.places.segment_archive import open_archive
from ledger.archive_place import ArchivePlace
from ledger.archived_history import read_receipts
from ledger.checker import SegmentChecker
from ledger.errors import ArchiveDamagedError, LedgerError
from ledger.receipts import PLACE_NAME, RECEIPTS_FOLDER, Receipt
from ledger.segments import (
    ARCHIVE_FOLDER,
    HEADER_BYTES_MAX,
    LOG_FOLDER,
    SegmentHeader,
    segment_base,
    segment_name,
)
from runtime.disk.interface import Disk
from runtime.disk.read_only import OnlyRead

ARCHIVE_VARIABLE: Final = "LOGBERG_ARCHIVE"
"""Names the archive, if it is not where the node's receipts say."""
_KEPT: Final = 2


def with_archive(disk: Disk, location: str) -> Disk:
    """Return the disk with the archive's segments, if the folder has receipts. Raises OSError."""
    return ArchivedDisk(disk, location) if disk.list(RECEIPTS_FOLDER) else disk


def place_of(disk: Disk) -> str:
    """Return the path or URL of the archive; empty: nothing names it. Raises OSError."""
    named = os.environ.get(ARCHIVE_VARIABLE, "")
    if not named and disk.exists(PLACE_NAME):
        named = disk.read(PLACE_NAME).decode(errors="replace")
    return named


class ArchivedDisk(OnlyRead):
    """The folder, read-only."""

    def __init__(self, disk: Disk, location: str) -> None:
        """Raises OSError."""
        self._disk = disk
        self.location = location
        self._receipts: dict[str, Receipt] = {}
        self._place: ArchivePlace | None = None
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._look()

    def _look(self) -> None:
        found, _ = read_receipts(self._disk, None)
        self._receipts = {segment_name(each.base_offset): each for each in found}

    def list(self, folder: str) -> list[str]:
        names = self._disk.list(folder)
        if folder != ARCHIVE_FOLDER:
            return names
        self._look()
        # Also those that are still in `log/`: they may leave before that is listed.
        return sorted({*names, *self._receipts})

    def exists(self, name: str) -> bool:
        folder, _, last = name.rpartition("/")
        return self._disk.exists(name) or (folder == ARCHIVE_FOLDER and last in self._receipts)

    def size(self, name: str) -> int:
        with suppress(FileNotFoundError):
            return self._disk.size(name)
        return self._receipt(name).size

    def read(self, name: str, position: int = 0, length: int | None = None) -> bytes:
        with suppress(FileNotFoundError):
            return self._disk.read(name, position, length)
        receipt = self._receipt(name)
        if position == 0 and length == HEADER_BYTES_MAX:
            # Whoever opens a log reads all headers. The receipt says what is in this one.
            return SegmentHeader(receipt.cluster_id, receipt.start).encode()
        content = self._content(receipt)
        return content[position : None if length is None else position + length]

    def _receipt(self, name: str) -> Receipt:
        """Return the receipt of a segment that is not here, also if it has just left."""
        folder, _, last = name.rpartition("/")
        if folder in (LOG_FOLDER, ARCHIVE_FOLDER) and segment_base(last) is not None:
            if last not in self._receipts:
                self._look()
            if last in self._receipts:
                return self._receipts[last]
        raise FileNotFoundError(2, "no such file", name)

    def _content(self, receipt: Receipt) -> bytes:
        name = segment_name(receipt.base_offset)
        content = self._kept.get(name)
        if content is None:
            content = self._kept[name] = self._fetch(receipt)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(name)
        return content

    def _fetch(self, receipt: Receipt) -> bytes:
        where = place_of(self._disk)
        if not where:
            raise OSError(
                f"{self.location}: the segment {segment_name(receipt.base_offset)} is in an "
                f"archive, and nothing says where it is: set {ARCHIVE_VARIABLE} to its path or URL"
            )
        if self._place is None:
            try:
                self._place = open_archive(where)
            except OSError as error:
                raise _unreadable(where, error) from error
        return archived_content(self._place, without_secrets(where), receipt)


def receipts_of(disk: Disk) -> list[Receipt]:
    """Return the receipts in a node's folder, ascending. Raises LedgerError, OSError."""
    found, bad = read_receipts(disk, None)
    for path, reason in bad.items():
        raise LedgerError(f"{path} is damaged: {reason}. The node writes it again when it starts")
    return found


def archived_content(place: ArchivePlace, where: str, receipt: Receipt) -> bytes:
    """Read an archived segment, and compare it with its receipt.

    Raises ArchiveDamagedError; OSError with a sentence if the archive can't be read.
    """
    name = segment_name(receipt.base_offset)
    try:
        # One byte more shows that something follows.
        content = place.read(name, 0, receipt.size + 1)
    except OSError as error:
        raise _unreadable(where, error) from error
    check_archived(f"{where}/{name}", content, receipt)
    return content


def _unreadable(where: str, error: OSError) -> OSError:
    return OSError(
        f"the archive {where} can't be read: {error.strerror or error}. If it has moved, set "
        f"{ARCHIVE_VARIABLE} to its path or URL"
    )


def check_archived(file: str, content: bytes, receipt: Receipt) -> None:
    """Compare the archive's copy of a segment with its receipt. Raises ArchiveDamagedError."""
    if len(content) == receipt.size and sha256(content).digest() == receipt.digest:
        return
    checker = SegmentChecker(
        receipt.cluster_id, receipt.base_offset, receipt.start, receipt.end.log_end
    )
    reason = "it has other bytes than the segment that was archived"
    try:
        checker.feed(content)
        checker.finish()
    except LedgerError as error:
        reason = getattr(error, "reason", str(error))
    raise ArchiveDamagedError(file, checker.position, checker.mark.log_end, reason)
