"""Compares the two copies of a segment that lies in both `log/` and `archive/`.

Rule: the two must be the same bytes. Readers use the copy in `log/` and never look at the other. If
somebody changed the other copy, readers would get it as soon as the first is removed. So a copy
that differs is reported.
"""

from collections.abc import Generator

from ledger.checker import PIECE_BYTES
from ledger.segments import ARCHIVE_FOLDER, LOG_FOLDER
from runtime.disk.interface import Disk


def second_copy(disk: Disk, path: str) -> str | None:
    """Return the path of the copy that readers don't use; None if there is none."""
    folder, _, name = path.partition("/")
    other = f"{ARCHIVE_FOLDER}/{name}"
    return other if folder == LOG_FOLDER and disk.exists(other) else None


def first_difference(disk: Disk, one: str, other: str) -> Generator[None, None, int | None]:
    """Return the first byte at which two files differ; None if they are equal.

    Yields after each piece.
    """
    position = 0
    while True:
        left = disk.read(one, position, PIECE_BYTES)
        right = disk.read(other, position, PIECE_BYTES)
        if left != right:
            same = next(
                (n for n, pair in enumerate(zip(left, right, strict=False)) if pair[0] != pair[1]),
                min(len(left), len(right)),
            )
            return position + same
        if not left:
            return None
        position += len(left)
        yield
