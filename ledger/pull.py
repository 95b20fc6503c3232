"""Fetches a segment from a peer. It is checked as it arrives and put in place only if it is right.

Rule: a peer's bytes are trusted because they end in the expected chain hash, not because of where
they come from. Bad bytes are refused with their position and never kept.
"""

from collections.abc import Callable, Generator

from ledger.chain import LogMark
from ledger.checker import PIECE_BYTES, BadSegmentError, SegmentChecker
from ledger.errors import LedgerError
from ledger.placing import place_file
from ledger.segments import ARCHIVE_FOLDER, LOG_FOLDER, segment_name
from runtime.disk.interface import AppendFile, Disk

INCOMING_FOLDER = "incoming"
PART = ".part"


class SegmentPull:
    """Fetches the segment that begins at `base_offset`, up to `end_offset`.

    `end_hash` is the chain hash that it must end in; None if the next segment will prove it.
    `previous` is the mark that it must continue; None if the end proves it.

    Run `prepare` in slices. Then ask the peer for the file at `position` and pass the answer to
    `add`, until `complete`. Then call `place`, or `keep` in a catch-up. After BadSegmentError or
    UnknownFormatError call `discard` and begin again with another peer.
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
        folder: str = LOG_FOLDER,
    ) -> None:
        """`folder`: where `place` puts it."""
        self._disk = disk
        self._folder = folder
        self._cluster_id = cluster_id
        self._base_offset = base_offset
        self._end_offset = end_offset
        self._end_hash = end_hash
        self._previous = previous
        self.name = segment_name(base_offset)
        """The file's name without folder; the same on every controller."""
        self._part = (
            part_name(base_offset) if folder == LOG_FOLDER else f"{folder}/{self.name}{PART}"
        )
        self._file: AppendFile | None = None
        self._failed: OSError | None = None
        self._cancel_place: Callable[[], None] | None = None
        self._checker = self._new_checker()

    def _new_checker(self) -> SegmentChecker:
        return SegmentChecker(self._cluster_id, self._base_offset, self._previous, self._end_offset)

    @property
    def position(self) -> int:
        """The next byte to ask the peer for."""
        return self._file.size() if self._file is not None else 0

    @property
    def mark(self) -> LogMark:
        """Everything before this mark is verified."""
        return self._checker.mark

    @property
    def complete(self) -> bool:
        """The whole segment is here and verified."""
        return self._checker.stopped and not self._ends_wrong

    def prepare(self, own: str | None = None) -> Generator[None, None, None]:
        """Continue with what an earlier process fetched, or with the good bytes of `own`.

        `own` is a path. The next `add` raises an OSError that happens here.
        """
        try:
            yield from self._prepare(own)
        except OSError as error:
            self._failed = error

    def _prepare(self, own: str | None) -> Generator[None, None, None]:
        self._disk.make_folder(self._part.partition("/")[0])
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
                break  # everything before this is good; the rest is fetched
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
        """Remove what was fetched, and begin again."""
        if self._file is None:
            self._disk.make_folder(self._part.partition("/")[0])
            self._file = self._disk.open(self._part)
        self._file.truncate(0)
        self._checker = self._new_checker()
        self._failed = None

    def keep(self, on_done: Callable[[OSError | None], None]) -> None:
        """Make the bytes durable where they are, and close the file.

        `HistoryPull` moves it later.
        """
        file = self._take_file()

        def synced(error: OSError | None) -> None:
            file.close()
            on_done(error)

        self._disk.sync(file, synced)

    def place(self, on_done: Callable[[OSError | None], None]) -> None:
        """Make the segment durable and put it in place. It replaces a file of that name."""
        disk, archived = self._disk, f"{ARCHIVE_FOLDER}/{self.name}"

        def placed(error: OSError | None) -> None:
            if error is None and self._folder == LOG_FOLDER and disk.exists(archived):
                try:
                    disk.unlink(archived)
                except OSError as failure:
                    error = failure
            on_done(error)

        self._cancel_place = place_file(
            disk,
            self._take_file(),
            f"{self._folder}/{self.name}",
            tuple(dict.fromkeys((self._folder, self._part.partition("/")[0]))),
            placed,
        )

    def _take_file(self) -> AppendFile:
        file = self._file
        if file is None or not self.complete:
            raise LedgerError(f"{self.name} is not complete")
        self._file = None
        return file

    def close(self) -> None:
        """Stop. The fetched bytes stay for `prepare`; nothing is placed any more."""
        if self._cancel_place is not None:
            self._cancel_place()
        if self._file is not None:
            self._file.close()
            self._file = None


def part_name(base_offset: int) -> str:
    """Return the path of a segment while it is being fetched."""
    return f"{INCOMING_FOLDER}/{segment_name(base_offset)}{PART}"
