"""Opens a ledger: finds its segments and checks that they reach the mark.

Rule: nothing before the mark is repaired. Missing or wrong bytes there raise DamagedLedgerError. A
segment after the mark without a whole header is left over from a crash. It is reported and removed.
"""

from typing import TYPE_CHECKING

from ledger.catalogue import Catalogue, Segment, find_segments, read_header
from ledger.chain import LogMark, first_hash
from ledger.errors import DamagedBatchError, DamagedLedgerError
from ledger.incoming import finish_catch_up
from ledger.index import INDEX_FOLDER
from ledger.segments import LOG_FOLDER, segment_name
from runtime.disk.interface import Disk

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger as BoundLogger

LEDGER_TAIL_CUT = "ledger_tail_cut"
LEDGER_OPENED = "ledger_opened"


def open_segments(
    disk: Disk, cluster_id: str, mark: LogMark, log: "BoundLogger"
) -> tuple[list[Segment], int]:
    """Return the segments, and the position of the mark in the last segment before it.

    Raises DamagedLedgerError, WrongClusterError, UnknownFormatError.
    """
    for folder in (LOG_FOLDER, INDEX_FOLDER):
        disk.make_folder(folder)
    finish_catch_up(disk, mark, log)
    segments = _read_headers(disk, cluster_id, mark, log)
    vetted = [segment for segment in segments if segment.base_offset < mark.log_end]
    position = 0
    if vetted:
        position = _reach_mark(disk, cluster_id, vetted, mark)
    elif mark.log_end:
        raise DamagedLedgerError(
            f"{LOG_FOLDER}/{segment_name(0)}",
            0,
            0,
            f"the ledger was synced up to offset {mark.log_end}, and no segment is here",
            base_offset=0,
        )
    elif mark.head != first_hash(cluster_id):
        raise DamagedLedgerError(LOG_FOLDER, 0, 0, "the mark at 0 is of another cluster")
    return segments, position


def _read_headers(disk: Disk, cluster_id: str, mark: LogMark, log: "BoundLogger") -> list[Segment]:
    segments: list[Segment] = []
    found = find_segments(disk)
    for i, (base, path) in enumerate(found):
        try:
            header, length = read_header(disk, path, base, cluster_id)
        except DamagedBatchError as error:
            if base < mark.log_end:
                raise DamagedLedgerError(
                    path, error.position, base, error.reason, base_offset=base
                ) from None
            drop_files(disk, [path for _, path in found[i:]], error.reason, log)
            break
        segments.append(Segment(path, header, length))
    return segments


def drop_files(disk: Disk, paths: list[str], reason: str, log: "BoundLogger") -> None:
    """Remove segments that lie wholly after the mark, newest first, and report each."""
    for path in reversed(paths):
        log.warning(LEDGER_TAIL_CUT, file=path, position=0, bytes=disk.size(path), reason=reason)
        disk.unlink(path)
    disk.sync_folder(LOG_FOLDER)


def _reach_mark(disk: Disk, cluster_id: str, vetted: list[Segment], mark: LogMark) -> int:
    """Walk the last segment up to the mark. Its last batch must have the mark's hash."""
    catalogue = Catalogue(disk, cluster_id, vetted, mark.log_end)
    segment = vetted[-1]
    index = segment.new_index()
    last = catalogue.fill_index(segment, index, mark.log_end)
    segment.index = index
    assert last is not None
    batch = next(catalogue.batches(last.base_offset, mark.log_end))
    if batch.hash != mark.head:
        raise DamagedLedgerError(
            segment.path,
            last.position,
            last.base_offset,
            "the batch before the mark is not the one that was synced (its hash differs)",
            base_offset=segment.base_offset,
        )
    return index.end_position
