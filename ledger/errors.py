"""What can be wrong with a ledger, each with a sentence that says what to do.

Rule: damage is named by file, position and offset, so that a person can look at the bytes.
"""


class LedgerError(Exception):
    """Anything a ledger refuses."""


class DamagedBatchError(LedgerError):
    """Bytes that are not the frame they should be.

    `torn` means that they end before the frame does, which is what an unfinished write looks
    like; anything else is a wrong byte.
    """

    def __init__(self, position: int, reason: str, *, torn: bool = False) -> None:
        super().__init__(f"at byte {position}: {reason}")
        self.position = position
        self.reason = reason
        self.torn = torn


class UnknownFormatError(LedgerError):
    """An undamaged frame of a format that this release does not know: never skipped."""

    def __init__(self, position: int, format_version: int, flags: int, place: str = "") -> None:
        super().__init__(
            f"{place or f'at byte {position}'}: format {format_version} with flags {flags:#06x} is "
            f"not known to this release, which reads format 1; start a newer release on these files"
        )
        self.position = position
        self.format_version = format_version
        self.flags = flags


class BatchTooLargeError(LedgerError):
    """A batch over BATCH_BYTES_MAX; the proposer must split it."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"the batch takes {size} bytes and a batch holds at most {limit}; write it as several"
        )
        self.size = size


class ChainBrokenError(LedgerError):
    """A batch that passed the fence does not continue our history: the node must halt."""


class DivergedError(LedgerError):
    """A batch that is applied again is not the one on disk: the node must halt."""


class WrongClusterError(LedgerError):
    """The files belong to another cluster."""


class HistoryMissingError(LedgerError):
    """The offset lies before the first one held here."""

    def __init__(self, offset: int, log_start: int) -> None:
        super().__init__(
            f"offset {offset} is before {log_start}, the first one held here; "
            f"load a snapshot, or ask a node that has the history"
        )
        self.offset = offset
        self.log_start = log_start


class DamagedLedgerError(LedgerError):
    """Bytes that were surely synced are gone or wrong.

    `base_offset` names the segment (see `backfill.SegmentPull`, which fetches it from a peer);
    `position` is the first bad byte's frame, `offset` the first record that can't be read.
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
