"""What jobs ask of the archive: they wait for an answer while the loop goes on.

Rule: a job that asks the archive has nothing to do with the archive's own speed. Whatever the
archive refuses is an ArchiveUnavailableError, whose message is for people. What it holds is trusted
only after `verify`, or by a `SegmentPull`.
"""

from collections.abc import Callable, Generator
from hashlib import sha256
from typing import TypeVar

from controller.storage.fetch_job import FetchJob, Steps
from ledger.archive_place import Archive, ArchivePlace
from ledger.chain import LogMark
from ledger.checker import PIECE_BYTES, BadSegmentError, SegmentChecker
from ledger.errors import ArchiveDamagedError, UnknownFormatError
from ledger.pull import SegmentPull
from ledger.receipts import Receipt
from ledger.segments import segment_base, segment_name
from runtime.disk.errors import sentence

T = TypeVar("T")
_READ_BYTES = 256 * 1024
"""Of one read of the archive. Verifying so much takes some milliseconds, in slices."""


class ArchiveUnavailableError(Exception):
    """The archive can't be used now; the message says why."""


class ArchiveAccess:
    """The archive, for jobs of one controller."""

    def __init__(self, archive: Archive, cluster_id: str) -> None:
        self._archive = archive
        self._cluster_id = cluster_id

    @property
    def location(self) -> str:
        """The archive's path or URL, without secrets."""
        return self._archive.location

    def ask(self, work: Callable[[ArchivePlace], T]) -> Steps[T]:
        """Wait for work on the archive. Raises ArchiveUnavailableError."""

        def begin(resume: Callable[[tuple[T | None, OSError | None]], None]) -> None:
            self._archive.run(work, lambda result, error: resume((result, error)))

        answer: tuple[T, OSError | None] = yield begin
        result, error = answer
        if error is not None:
            what = f"the archive {self.location} can't be used"
            raise ArchiveUnavailableError(f"{what}: {error.strerror or error}") from error
        return result

    def do(self, work: Callable[[ArchivePlace], object]) -> None:
        """Let the archive do something, whatever comes of it."""
        self._archive.run(work, lambda _result, _error: None)

    def bases(self) -> Steps[list[int]]:
        """Return the base offsets of the segments in the archive. Raises as `ask`."""
        names = yield from self.ask(lambda place: place.names())
        return sorted(base for name in names if (base := segment_base(name)) is not None)

    def fill(self, pull: SegmentPull) -> Steps[None]:
        """Read a segment into `pull` until it is complete.

        Raises ArchiveUnavailableError, and what `pull.add` raises.
        """
        name = pull.name
        while not pull.complete:
            pull.add((yield from self._read(name, pull.position)))

    def _read(self, name: str, position: int) -> Steps[bytes]:
        return (yield from self.ask(lambda place: place.read(name, position, _READ_BYTES)))

    def verify(
        self, job: FetchJob, base_offset: int, start: LogMark | None, end: LogMark
    ) -> Steps[Receipt | None]:
        """Read the archive's segment from its first byte to its last, and return its receipt.

        `start` None: the end proves where it begins. None: the segment is sound as far as it goes,
        but ends before `end`. Raises ArchiveUnavailableError, ArchiveDamagedError.
        """
        name = segment_name(base_offset)
        file = f"{self.location}/{name}"
        checker = SegmentChecker(self._cluster_id, base_offset, start, end.log_end)
        digest, position = sha256(), 0

        def check(piece: bytes) -> Generator[None, None, None]:
            for at in range(0, len(piece), PIECE_BYTES):
                part = piece[at : at + PIECE_BYTES]
                digest.update(part)
                checker.feed(part)
                yield

        try:
            while piece := (yield from self._read(name, position)):
                position += len(piece)
                yield from job.in_slices(check(piece))
            checker.finish()
        except BadSegmentError as error:
            raise ArchiveDamagedError(file, error.position, error.offset, error.reason) from None
        except UnknownFormatError as error:
            raise ArchiveDamagedError(file, error.position, base_offset, str(error)) from None
        reached, header = checker.mark, checker.header
        if not checker.stopped and reached.log_end < end.log_end and checker.batches:
            return None
        if reached != end or header is None or checker.position != position:
            reason = "it is not the segment of this history, or bytes follow its end"
            raise ArchiveDamagedError(file, checker.position, reached.log_end, reason)
        return Receipt(self._cluster_id, header.previous, end, position, digest.digest())


def refused_here(error: OSError) -> str:
    """Return the sentence for what this node's own disk refused."""
    return sentence(error, "keeping what was read back from the archive")
