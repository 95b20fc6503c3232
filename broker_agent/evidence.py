"""Keeps what the agent saw when the cluster's history is no longer the one that it followed.

A cluster that was recovered from what survived may lack records that a broker has seen. The broker
must follow the cluster, so it fetches everything again. But its old image, and the hash that its
history ended with, may be all that is left of what was lost.

Rule: before the agent drops its image, it moves the images on its disk to `evidence/`, and writes
there a note with the place and the chain hash up to which it had followed the log, and why that is
not the controller's. Then it writes the image that it had in memory. Nothing in `evidence/` is ever
read again, replaced or removed by the agent. At most `KEPT_MAX` differences are kept, the first
ones, so that a difference that returns does not fill the disk.
"""

from collections.abc import Generator

import msgspec
import structlog

from broker_agent.config import AgentConfig
from broker_agent.view import PlacedImage
from ledger.placing import place_file
from metadata.image import MetadataImage
from runtime.clock import Clock
from runtime.disk.interface import AppendFile, Disk
from runtime.loop.slices import SlicedWork
from snapshots.checkpoint import FOLDER as CHECKPOINTS
from snapshots.checkpoint import CheckpointHeader, CheckpointId
from snapshots.packing import image_frames
from snapshots.writing import append_checkpoint

FOLDER = "evidence"
KEPT_MAX = 8
EVIDENCE_KEPT = "evidence_kept"
EVIDENCE_FAILED = "evidence_failed"
_NOTE = ".json"


class EvidenceNote(msgspec.Struct, frozen=True, rename="camel"):
    """How far the agent had followed the log, and what contradicts that."""

    cluster_id: str
    broker_id: int
    offset: int
    """The agent had followed the log up to here."""
    epoch: int
    head: str
    """The chain hash there: it proves which history that was."""
    timestamp_ms: int
    """Of the last batch before that offset."""
    why: str
    noted_at_ms: int


class Evidence:
    """The folder `evidence/` of one agent."""

    def __init__(
        self,
        config: AgentConfig,
        clock: Clock,
        disk: Disk,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._config = config
        self._clock = clock
        self._disk = disk
        self._log = log
        self._writing: SlicedWork | None = None
        self.newest = ""
        """The newest note, as a path in the agent's folder; empty: there is none."""

    def open(self) -> None:
        """Look what an earlier process has kept."""
        notes = self._notes()
        self.newest = f"{FOLDER}/{notes[-1]}" if notes else ""

    def keep(
        self,
        newest: PlacedImage,
        header: CheckpointHeader | None,
        saved: list[CheckpointId],
        why: str,
    ) -> bool:
        """Keep what the agent saw. Returns whether the saved images are in `evidence/` now.

        `header`: of the newest image; None if that can't be written. `saved`: the images on disk.
        """
        if newest.mark.log_end == 0:
            return False
        name = CheckpointId(newest.mark.log_end, newest.mark.epoch).name.partition(".")[0]
        notes = self._notes()
        if f"{name}{_NOTE}" in notes or len(notes) >= KEPT_MAX:
            return False
        try:
            self._disk.make_folder(FOLDER)
            for checkpoint in saved:
                self._disk.rename(f"{CHECKPOINTS}/{checkpoint.name}", f"{FOLDER}/{checkpoint.name}")
            self._disk.sync_folder(FOLDER)
            note = f"{FOLDER}/{name}{_NOTE}"
            self._disk.replace(note, msgspec.json.encode(self._note(newest, why)))
            self.newest = note
            self._log.error(
                EVIDENCE_KEPT,
                note=note,
                offset=newest.mark.log_end,
                epoch=newest.mark.epoch,
                head=newest.mark.head.hex(),
            )
            if header is not None and header.id not in saved:
                self._write(newest.image, header)
        except OSError as error:
            self._failed(error)
            return False
        return True

    def close(self) -> None:
        """Stop what is in progress."""
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _notes(self) -> list[str]:
        return [name for name in self._disk.list(FOLDER) if name.endswith(_NOTE)]

    def _note(self, newest: PlacedImage, why: str) -> EvidenceNote:
        mark = newest.mark
        return EvidenceNote(
            cluster_id=self._config.cluster_id,
            broker_id=self._config.broker_id,
            offset=mark.log_end,
            epoch=mark.epoch,
            head=mark.head.hex(),
            timestamp_ms=mark.timestamp_ms,
            why=why,
            noted_at_ms=self._clock.wall_ms(),
        )

    def _write(self, image: MetadataImage, header: CheckpointHeader) -> None:
        """Write an image in slices."""
        self.close()
        target = f"{FOLDER}/{header.id.name}"
        file = self._disk.open(f"{target}.part")
        failed: list[OSError] = []

        def work() -> Generator[None, None, None]:
            try:
                file.truncate(0)
                frames = image_frames(image, header.format, for_brokers=True)
                yield from append_checkpoint(file.append, header, frames)
            except OSError as error:
                failed.append(error)

        def done() -> None:
            self._writing = None
            if failed:
                file.close()
                self._failed(failed[0])
            else:
                self._place(file, target)

        self._writing = SlicedWork(self._clock, work(), done)
        self._writing.begin()

    def _place(self, file: AppendFile, target: str) -> None:
        def placed(error: OSError | None) -> None:
            if error is not None:
                self._failed(error)

        place_file(self._disk, file, target, (FOLDER,), placed)

    def _failed(self, error: OSError) -> None:
        self._log.error(EVIDENCE_FAILED, why=error.strerror or str(error))
