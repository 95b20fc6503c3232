"""What can be wrong with a ledger. Each message says what to do.

Rule: an error names file, byte position and offset, so that a person can look at the bytes.
"""

from collections.abc import Sequence


class LedgerError(Exception):
    """The base of all errors of a ledger."""


class DamagedBatchError(LedgerError):
    """Bytes that are not the expected frame.

    `torn` means that the bytes end before the frame does, as after an unfinished write. Without it,
    a byte is wrong.
    """

    def __init__(self, position: int, reason: str, *, torn: bool = False) -> None:
        super().__init__(f"at byte {position}: {reason}")
        self.position = position
        self.reason = reason
        self.torn = torn


class UnknownFormatError(LedgerError):
    """An undamaged frame in a format that this release doesn't know.

    Such a frame is never skipped.
    """

    def __init__(
        self,
        position: int,
        format_version: int,
        flags: int,
        place: str = "",
        known: Sequence[int] = (1,),
    ) -> None:
        reads = " and ".join(map(str, known))
        super().__init__(
            f"{place or f'at byte {position}'}: format {format_version} with flags {flags:#06x} is "
            f"not known to this release, which reads format {reads}. Use a newer release for these "
            "files"
        )
        self.position = position
        self.format_version = format_version
        self.flags = flags


class BatchTooLargeError(LedgerError):
    """A batch over BATCH_BYTES_MAX. The proposer must split it."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"the batch has {size} bytes; the limit is {limit}. Split it into several batches"
        )
        self.size = size


class ChainBrokenError(LedgerError):
    """A batch passed the fence but does not continue this node's history. The node must halt."""


class DivergedError(LedgerError):
    """A batch that is applied again differs from the one on disk. The node must halt."""


class WrongClusterError(LedgerError):
    """The files belong to another cluster."""


class HistoryMissingError(LedgerError):
    """The offset lies before the first one that this node has."""

    def __init__(self, offset: int, log_start: int) -> None:
        super().__init__(
            f"offset {offset} is before {log_start}, the first one held here. "
            f"Load a snapshot, or ask a node that has the history"
        )
        self.offset = offset
        self.log_start = log_start


class SegmentAwayError(HistoryMissingError):
    """The offset lies in a segment that is in the archive only. It can be read back from there."""


class ArchiveDamagedError(LedgerError):
    """The archive's copy of a segment is not what it must be. The message says what to do."""

    def __init__(self, file: str, position: int, offset: int, reason: str) -> None:
        super().__init__(
            f"{file}, byte {position}, offset {offset}: {reason}. Nothing was changed. Put a sound "
            f"copy in its place: from another archive, a backup or a controller that still has the "
            f"segment (docs/runbook.md, the archive is gone)"
        )


class DamagedLedgerError(LedgerError):
    """Bytes that were synced are missing or wrong.

    `base_offset` names the segment, which `backfill.mend` fetches from a peer. `position` is where
    the first bad frame begins, `offset` the first record that can't be read.
    """

    def __init__(
        self, file: str, position: int, offset: int, reason: str, *, base_offset: int = -1
    ) -> None:
        super().__init__(
            f"{file}, byte {position}, offset {offset}: {reason}. The rest of the cluster still "
            f"has these records: fetch the segment again from a peer, or restore the file"
        )
        self.file = file
        self.position = position
        self.offset = offset
        self.reason = reason
        self.base_offset = base_offset
