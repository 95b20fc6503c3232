"""Finding a whole batch behind a bad place, for whoever reads on.

Rule: only a frame whose every byte is right counts. What lies between is lost, and said elsewhere.
"""

from ledger.batch import BATCH_BYTES_MAX, MAGIC, Batch, parse
from ledger.errors import LedgerError
from ledger.scan import WINDOW_BYTES
from ledger.segments import HEADER_BYTES_MAX, parse_segment_header
from runtime.disk import Disk


def find_batch(disk: Disk, name: str, position: int, cluster_id: str) -> tuple[int, Batch] | None:
    """Return the first whole batch at or behind `position`, and its place; None: there is none.

    For reading on behind a bad place. None too in a segment that says it is another cluster's.
    """
    try:
        header, _ = parse_segment_header(disk.read(name, 0, HEADER_BYTES_MAX))
        if header.cluster_id != cluster_id:
            return None
    except LedgerError:
        pass  # its batches may be whole
    while window := disk.read(name, position, WINDOW_BYTES):
        start = window.find(MAGIC)
        while start >= 0:
            # A frame that goes over the window's end is looked at in the next window.
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
