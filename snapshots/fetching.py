"""Fetches a checkpoint from another node in ranges; a fetch can be resumed.

Rule: the file is put in place only when all of it is verified and it is the requested checkpoint.
Until then the checkpoints that are here stay.
"""

from collections.abc import Callable, Generator

from ledger.checker import PIECE_BYTES
from ledger.errors import DamagedBatchError, LedgerError
from ledger.placing import place_file
from runtime.disk.interface import AppendFile, Disk
from snapshots.checkpoint import FOLDER, Block, CheckpointChecker, CheckpointHeader, CheckpointId
from snapshots.errors import CheckpointError, DamagedCheckpointError
from snapshots.store import check_header

INCOMING_FOLDER = "incoming"


class CheckpointFetch:
    """Fetches a checkpoint of `size` bytes, as the other node reported.

    Run `prepare` in slices. Ask for the file at `position` and pass the answer to `add` until
    `complete`. Then call `place`. After DamagedCheckpointError call `discard` and begin again.
    """

    def __init__(
        self, disk: Disk, cluster_id: str, checkpoint: CheckpointId, size: int | None = None
    ) -> None:
        self._disk = disk
        self._cluster_id = cluster_id
        self._checkpoint = checkpoint
        self._part = f"{INCOMING_FOLDER}/{checkpoint.name}.part"
        self._file: AppendFile | None = None
        self._cancel_place: Callable[[], None] | None = None
        self._checker = CheckpointChecker()
        self.size = size
        """Bytes of the whole file; the caller may set it after the first answer."""

    @property
    def position(self) -> int:
        """The next byte to ask for."""
        return self._file.size() if self._file is not None else 0

    @property
    def complete(self) -> bool:
        """The whole file is here and verified."""
        return self._checker.footer is not None

    @property
    def header(self) -> CheckpointHeader | None:
        """The file's header, once it has arrived."""
        return self._checker.header

    def prepare(self) -> Generator[None, None, None]:
        """Continue with what an earlier process fetched, if it is good."""
        self._disk.make_folder(INCOMING_FOLDER)
        self._file = self._disk.open(self._part)
        position = 0
        while piece := self._disk.read(self._part, position, PIECE_BYTES):
            try:
                self._feed(piece)
            except (DamagedCheckpointError, LedgerError):
                self.discard()
                return
            position += len(piece)
            yield

    def add(self, data: bytes) -> list[Block]:
        """Take the bytes at `position`; return the blocks of records that they complete.

        Raises DamagedCheckpointError, UnknownFormatError, OSError.
        """
        if self._file is None:
            raise CheckpointError("run `prepare` first")
        if not data:
            raise DamagedCheckpointError(self._part, self.position, "the file ends too early")
        blocks = self._feed(data)
        self._file.append(data)
        return blocks

    def _feed(self, data: bytes) -> list[Block]:
        known = self._checker.header is not None
        try:
            blocks = self._checker.feed(data)
        except DamagedBatchError as error:
            raise DamagedCheckpointError(self._part, error.position, error.reason) from None
        if not known and self._checker.header is not None:
            check_header(self._part, self._checker.header, self._cluster_id, self._checkpoint)
        return blocks

    def discard(self) -> None:
        """Remove what was fetched, and begin again."""
        if self._file is None:
            self._disk.make_folder(INCOMING_FOLDER)
            self._file = self._disk.open(self._part)
        self._file.truncate(0)
        self._checker = CheckpointChecker()

    def place(self, on_done: Callable[[OSError | None], None]) -> None:
        """Make the file durable and put it in place."""
        if not self.complete or self._file is None:
            raise CheckpointError(f"checkpoint {self._checkpoint} is not complete")
        self._checker.finish()
        file, self._file = self._file, None
        try:
            self._disk.make_folder(FOLDER)
        except OSError as error:
            file.close()
            on_done(error)
            return
        self._cancel_place = place_file(
            self._disk,
            file,
            f"{FOLDER}/{self._checkpoint.name}",
            (FOLDER, INCOMING_FOLDER),
            on_done,
        )

    def close(self) -> None:
        """Stop. The fetched bytes stay for `prepare`; nothing is placed any more."""
        if self._cancel_place is not None:
            self._cancel_place()
        if self._file is not None:
            self._file.close()
            self._file = None
