"""Writes a checkpoint from an immutable image without blocking the loop.

Rule: blocks go to a `.part` file in slices. The complete file is synced in the background, then
renamed. After a crash there is either the whole file or a `.part`, which the next start removes.
"""

from collections.abc import Callable, Generator, Iterable
from hashlib import sha256

from ledger.placing import place_file
from runtime.clock import Clock
from runtime.disk.interface import AppendFile, Disk
from runtime.loop.slices import SlicedWork
from snapshots.checkpoint import (
    FOLDER,
    CheckpointHeader,
    CheckpointId,
    Footer,
    encode_footer,
    encode_header,
)
from snapshots.packing import Packed

OnWritten = Callable[[CheckpointId | None, OSError | None], None]


def append_checkpoint(
    append: Callable[[bytes], object], header: CheckpointHeader, frames: Iterable[Packed | None]
) -> Generator[None, None, None]:
    """Append a whole checkpoint, piece by piece. Yields where the writing may pause.

    `frames` yields the blocks, and None for a pause without one.
    """
    digest = sha256()
    first = encode_header(header)
    digest.update(first)
    append(first)
    blocks = records = 0
    for packed in frames:
        if packed is not None:
            count, block = packed
            digest.update(block)
            append(block)
            blocks += 1
            records += count
        yield
    append(encode_footer(Footer(blocks, records, digest.digest()), header.format))


class CheckpointWriting:
    """One checkpoint that is being written."""

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        header: CheckpointHeader,
        frames: Iterable[Packed | None],
        on_done: OnWritten,
    ) -> None:
        """`frames`: as of `append_checkpoint`."""
        self._disk = disk
        self._header = header
        self._frames = frames
        self._on_done: OnWritten | None = on_done
        self._name = f"{FOLDER}/{header.id.name}"
        self._part = f"{self._name}.part"
        self._file: AppendFile | None = None
        self._error: OSError | None = None
        self.size = 0
        """Bytes written so far."""
        self._slices = SlicedWork(clock, self._write(), self._written)
        self._stop = self._slices.cancel
        self._slices.begin()

    def cancel(self) -> None:
        """Give up. Nothing is called back. Has no effect after the end."""
        if self._on_done is not None:
            self._on_done = None
            self._stop()
            self._drop()

    def pause(self) -> None:
        """Pack no further block until `resume`."""
        self._slices.pause()

    def resume(self) -> None:
        """Go on."""
        self._slices.resume()

    def _write(self) -> Generator[None, None, None]:
        try:
            yield from self._write_frames()
        except OSError as error:
            self._error = error

    def _write_frames(self) -> Generator[None, None, None]:
        if self._disk.exists(self._part):
            self._disk.unlink(self._part)
        self._file = file = self._disk.open(self._part)

        def append(data: bytes) -> None:
            file.append(data)
            self.size += len(data)

        yield from append_checkpoint(append, self._header, self._frames)

    def _written(self) -> None:
        if self._error is not None:
            self._finish(self._error)
            return
        assert self._file is not None
        self._stop = place_file(self._disk, self._file, self._name, (FOLDER,), self._finish)

    def _finish(self, error: OSError | None) -> None:
        on_done, self._on_done = self._on_done, None
        if error is not None:
            self._drop()
        if on_done is not None:
            on_done(None if error is not None else self._header.id, error)

    def _drop(self) -> None:
        if self._file is not None:
            self._file.close()
        try:
            self._disk.unlink(self._part)
        except OSError:
            return  # the next start removes it
