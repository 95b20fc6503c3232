"""Fetching a segment from a peer: checked as it arrives, put in place only when it is right.

Rule: a peer's bytes are believed because they end in the chain hash they must have, never
because of where they come from. Bad ones are refused with their place, and never kept.
"""

from collections.abc import Callable, Generator

from ledger.chain import LogMark
from ledger.checker import PIECE_BYTES, BadSegmentError, SegmentChecker
from ledger.errors import LedgerError
from ledger.placing import place_file
from ledger.segments import ARCHIVE_FOLDER, LOG_FOLDER, segment_name
from runtime.disk import AppendFile, Disk

INCOMING_FOLDER = "incoming"


class SegmentPull:
    """Fetches the segment that begins at `base_offset`, up to `end_offset`.

    `end_hash` is the chain hash it must end in; None when what follows will prove it.
    `previous` is the mark it must continue; None when the end proves it.

    Use: run `prepare` in slices, then ask the peer for the file at `position` and `add` the
    answer until `complete`, then `place` (or `keep`, for a catch-up). After BadSegmentError or
    UnknownFormatError: `discard`, and begin again with another peer.
    """

    def __init__(
        self,
        disk: Disk,
        cluster_id: str,
        base_offset: int,
        end_offset: int,
        end_hash: bytes | None,
        *,
        previous: LogMark | None = None,
    ) -> None:
        self._disk = disk
        self._cluster_id = cluster_id
        self._base_offset = base_offset
        self._end_offset = end_offset
        self._end_hash = end_hash
        self._previous = previous
        self.name = segment_name(base_offset)
        """Of the file, on every controller, without folder."""
        self._part = part_name(base_offset)
        self._file: AppendFile | None = None
        self._failed: OSError | None = None
        self._cancel_place: Callable[[], None] | None = None
        self._checker = self._new_checker()

    def _new_checker(self) -> SegmentChecker:
        return SegmentChecker(self._cluster_id, self._base_offset, self._previous, self._end_offset)

    @property
    def position(self) -> int:
        """The next byte wanted of the peer's file."""
        return self._file.size() if self._file is not None else 0

    @property
    def mark(self) -> LogMark:
        """How far it is right."""
        return self._checker.mark

    @property
    def complete(self) -> bool:
        """All is here, and right."""
        return self._checker.stopped and not self._ends_wrong

    def prepare(self, own: str | None = None) -> Generator[None, None, None]:
        """Take up what an earlier incarnation fetched, else the good beginning of the file `own`.

        An OSError is raised by the next `add`.
        """
        try:
            yield from self._prepare(own)
        except OSError as error:
            self._failed = error

    def _prepare(self, own: str | None) -> Generator[None, None, None]:
        self._disk.make_folder(INCOMING_FOLDER)
        copying = own is not None and not self._disk.exists(self._part)
        source = own if copying else self._part
        self._file = file = self._disk.open(self._part)
        position = 0
        while source and self._disk.exists(source) and not self._checker.stopped:
            piece = self._disk.read(source, position, PIECE_BYTES)
            position += len(piece)
            if copying:
                file.append(piece)
            try:
                self._checker.feed(piece)
            except LedgerError:
                break  # what was checked before it is good, and the rest is fetched
            if not piece:
                break
            yield
            if file is not self._file:
                return  # closed meanwhile
        self._checker.forget_rest()
        file.truncate(self._checker.position)
        if self._ends_wrong:
            self.discard()

    def add(self, data: bytes) -> None:
        """Take the bytes at `position`. Raises BadSegmentError, UnknownFormatError, OSError."""
        if self._failed is not None:
            raise self._failed
        if self._file is None:
            raise LedgerError("run `prepare` first")
        if not data:
            raise BadSegmentError(
                self.position, self.mark.log_end, "the peer's file ends too early", torn=True
            )
        self._checker.feed(data)
        if self._ends_wrong:
            raise BadSegmentError(
                self._checker.position,
                self.mark.log_end,
                "the segment does not end in the chain hash that it must have",
            )
        self._file.append(data)
        if self._checker.stopped:
            self._file.truncate(self._checker.position)

    @property
    def _ends_wrong(self) -> bool:
        expected = self._end_hash
        return self._checker.stopped and expected not in (None, self.mark.head)

    def discard(self) -> None:
        """Throw away what was fetched, and begin again."""
        if self._file is None:
            self._disk.make_folder(INCOMING_FOLDER)
            self._file = self._disk.open(self._part)
        self._file.truncate(0)
        self._checker = self._new_checker()
        self._failed = None

    def keep(self, on_done: Callable[[OSError | None], None]) -> None:
        """Make its bytes durable where they are, and close the file; see `HistoryPull`."""
        file = self._take_file()

        def synced(error: OSError | None) -> None:
            file.close()
            on_done(error)

        self._disk.sync(file, synced)

    def place(self, on_done: Callable[[OSError | None], None]) -> None:
        """Make it durable and put it in place, over whatever had its name."""
        disk, archived = self._disk, f"{ARCHIVE_FOLDER}/{self.name}"

        def placed(error: OSError | None) -> None:
            if error is None and disk.exists(archived):
                try:
                    disk.unlink(archived)
                except OSError as failure:
                    error = failure
            on_done(error)

        self._cancel_place = place_file(
            disk,
            self._take_file(),
            f"{LOG_FOLDER}/{self.name}",
            (LOG_FOLDER, INCOMING_FOLDER),
            placed,
        )

    def _take_file(self) -> AppendFile:
        file = self._file
        if file is None or not self.complete:
            raise LedgerError(f"{self.name} is not complete")
        self._file = None
        return file

    def close(self) -> None:
        """Stop; what was fetched stays for `prepare`. Nothing is placed any more."""
        if self._cancel_place is not None:
            self._cancel_place()
        if self._file is not None:
            self._file.close()
            self._file = None


def part_name(base_offset: int) -> str:
    """Return the name, with folder, of a segment while it is fetched."""
    return f"{INCOMING_FOLDER}/{segment_name(base_offset)}.part"
