"""Finds the next whole batch after a bad place, so that reading can continue there.

Rule: only a frame in which every byte is right counts. The caller reports what is lost between.
"""

from ledger.batch import BATCH_BYTES_MAX, MAGIC, Batch, parse
from ledger.errors import LedgerError
from ledger.scan import WINDOW_BYTES
from ledger.segments import HEADER_BYTES_MAX, parse_segment_header
from runtime.disk.interface import Disk


def find_batch(disk: Disk, name: str, position: int, cluster_id: str) -> tuple[int, Batch] | None:
    """Return the first whole batch at or after `position`, and its position; None if there is none.

    Also None in a segment whose header names another cluster.
    """
    try:
        header, _ = parse_segment_header(disk.read(name, 0, HEADER_BYTES_MAX))
        if header.cluster_id != cluster_id:
            return None
    except LedgerError:
        pass  # the header is bad, but batches after it may be whole
    while window := disk.read(name, position, WINDOW_BYTES):
        start = window.find(MAGIC)
        while start >= 0:
            # The next window holds a frame that goes over the end of this one.
            if start + BATCH_BYTES_MAX > len(window) == WINDOW_BYTES:
                break
            try:
                return position + start, parse(window, start)
            except LedgerError:
                start = window.find(MAGIC, start + 1)
        if len(window) < WINDOW_BYTES:
            return None
        position += start if start >= 0 else len(window) - len(MAGIC) + 1
    return None
