"""Fetching a segment from a peer: checked as it arrives, put in place only when it is right.

Rule: a peer's bytes are believed because they end in the chain hash they must have, never
because of where they come from. Bad ones are refused with their place, and never kept.
"""

from collections.abc import Callable, Generator

from ledger.chain import LogMark
from ledger.checker import PIECE_BYTES, BadSegmentError, SegmentChecker
from ledger.errors import LedgerError
from ledger.segments import ARCHIVE_FOLDER, LOG_FOLDER, segment_name
from runtime.disk import AppendFile, Disk

INCOMING_FOLDER = "incoming"


class SegmentPull:
    """Fetches the segment that begins at `base_offset`, up to `end_offset`.

    `end_hash` is the chain hash it must end in; None when what follows will prove it.
    `previous` is the mark it must continue; None when the end proves it.

    Use: run `prepare` in slices, then ask the peer for the file at `position` and `add` the
    answer until `complete`, then `place` (or `keep`, for a jump). After BadSegmentError or
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
        self.kept = f"{INCOMING_FOLDER}/{self.name}"
        self._part = f"{self.kept}.part"
        self._file: AppendFile | None = None
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
        return self._checker.stopped

    def prepare(self, own: str | None = None) -> Generator[None, None, None]:
        """Take up what an earlier life fetched, else the good beginning of the file `own`."""
        self._disk.make_folder(INCOMING_FOLDER)
        candidates = (self.kept, self._part, own)
        source = next((name for name in candidates if name and self._disk.exists(name)), None)
        if source == self.kept:
            self._disk.rename(self.kept, self._part)
            source = self._part
        self._file = self._disk.open(self._part)
        copying = source != self._part
        position = 0
        try:
            while source is not None and not self._checker.stopped:
                piece = self._disk.read(source, position, PIECE_BYTES)
                if not piece:
                    break
                position += len(piece)
                if copying:
                    self._file.append(piece)
                self._checker.feed(piece)
                yield
        except LedgerError:
            pass  # what was checked before it is good, and the rest is fetched
        self._checker.forget_rest()
        self._file.truncate(self._checker.position)
        self._refuse_wrong_end()

    def add(self, data: bytes) -> None:
        """Take the bytes at `position`. Raises BadSegmentError, UnknownFormatError, OSError."""
        if self._file is None:
            raise LedgerError("run `prepare` first")
        if not data:
            raise BadSegmentError(
                self.position, self.mark.log_end, "the peer's file ends too early", torn=True
            )
        self._checker.feed(data)
        self._file.append(data)
        if self._checker.stopped:
            self._file.truncate(self._checker.position)
        self._refuse_wrong_end()

    def _refuse_wrong_end(self) -> None:
        if self.complete and self._end_hash is not None and self.mark.head != self._end_hash:
            raise BadSegmentError(
                self._checker.position,
                self.mark.log_end,
                "the segment does not end in the chain hash that it must have",
            )

    def discard(self) -> None:
        """Throw away what was fetched, and begin again."""
        if self._file is None:
            self._file = self._disk.open(self._part)
        self._file.truncate(0)
        self._checker = self._new_checker()

    def keep(self, on_done: Callable[[OSError | None], None]) -> None:
        """Make it durable as `incoming/<name>`, not in place yet."""
        self._finish(self.kept, INCOMING_FOLDER, on_done)

    def place(self, on_done: Callable[[OSError | None], None]) -> None:
        """Make it durable and put it in place, over whatever had its name."""
        self._finish(f"{LOG_FOLDER}/{self.name}", LOG_FOLDER, on_done)

    def _finish(self, target: str, folder: str, on_done: Callable[[OSError | None], None]) -> None:
        if not self.complete or self._file is None:
            raise LedgerError(f"{self.name} is not complete")
        self._refuse_wrong_end()
        file, part, disk = self._file, self._part, self._disk
        archived = f"{ARCHIVE_FOLDER}/{self.name}"
        self._file = None

        def work() -> None:
            file.sync()
            file.close()
            disk.rename(part, target)
            disk.sync_folder(folder)
            disk.sync_folder(INCOMING_FOLDER)
            if folder == LOG_FOLDER and disk.exists(archived):
                disk.unlink(archived)
                disk.sync_folder(ARCHIVE_FOLDER)

        disk.in_background(work, lambda _result, error: on_done(error))

    def close(self) -> None:
        """Stop; what was fetched stays for `prepare`."""
        if self._file is not None:
            self._file.close()
            self._file = None
