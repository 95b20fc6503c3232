"""A generated history on disk: nodes' folders, as controllers leave them.

Rule: segments are cut where the ledger cuts them, checkpoints are those of the real image, and all
replicas hold the same bytes; so whatever reads a node's folder reads these. The manifests vouch
for the whole ledger, but no journal goes with them: no controller can be started on such a folder.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from audit.generated.facts import GeneratedHistory
from audit.generated.life import CLUSTER_ID, Life
from audit.generated.rhythm import START_MS
from ledger.batch import Batch
from ledger.chain import LogMark
from ledger.segments import LOG_FOLDER, SEGMENT_BYTES, SegmentHeader, must_roll, segment_name
from metadata.codec import encode_record
from metadata.image import MetadataImage
from metadata.records import VotersRecord
from quorum import api
from quorum.journal.manifest import FILE as MANIFEST
from quorum.journal.manifest import JournalManifest, encode_manifest
from runtime.disk.interface import AppendFile, Disk
from runtime.disk.real import RealDisk
from snapshots.checkpoint import (
    FOLDER,
    CheckpointHeader,
)
from snapshots.packing import format_of, image_frames
from snapshots.writing import append_checkpoint

CHECKPOINT_EVERY: Final = 250_000
"""Records; controllers keep at least one checkpoint in as many."""
_CHECKPOINTS_OF_A_SHORT_ONE: Final = 8
_BUFFER_BYTES: Final = 1024 * 1024
_PROGRESS_EVERY: Final = 512
STORY = "story.json"
OnProgress = Callable[[int, int], None]
"""Called with the records written, and how many there will be, about."""


def write_history(
    folder: Path,
    *,
    days: float | None = None,
    records: int | None = None,
    seed: int = 1,
    replicas: int = 1,
    cluster_id: str = CLUSTER_ID,
    brokers: int | None = None,
    topics: int | None = None,
    open_transaction: bool = False,
    checkpoint_every: int | None = None,
    segment_bytes: int = SEGMENT_BYTES,
    on_progress: OnProgress | None = None,
) -> GeneratedHistory:
    """Write a history into `folder`/controller-1 to -`replicas`, and what is in it as story.json.

    It ends with the operation that reaches `records`, else with the last one within `days`. A
    checkpoint is written every `checkpoint_every` records (None: every 250,000, and some in a
    short history; 0: none). Raises ValueError, OSError.
    """
    if replicas < 1:
        raise ValueError(f"a history has at least one replica, not {replicas}")
    life = Life(
        seed,
        days=days,
        records=records,
        cluster_id=cluster_id,
        brokers=brokers,
        topics=topics,
        open_transaction=open_transaction,
    )
    if checkpoint_every is None:
        short = life.expected_records // _CHECKPOINTS_OF_A_SHORT_ONE
        checkpoint_every = min(CHECKPOINT_EVERY, max(short, 1_000))
    nodes = tuple(folder / f"controller-{number}" for number in range(1, replicas + 1))
    disks = [RealDisk(node) for node in nodes]
    for disk in disks:
        disk.make_folder(LOG_FOLDER)
        disk.make_folder(FOLDER)
    segments = _Segments(disks, cluster_id, segment_bytes)
    checkpoints = _Checkpoints(disks, cluster_id, checkpoint_every, life)
    batches = 0
    for batches, sealed in enumerate(life.sealed(), 1):
        segments.add(sealed.batch)
        checkpoints.follow(sealed.batch)
        if on_progress is not None and batches % _PROGRESS_EVERY == 0:
            end = sealed.batch.header.end_offset
            on_progress(end, max(end, life.expected_records))
    segments.close()
    for disk in disks:
        disk.replace(MANIFEST, _manifest(cluster_id, life.mark, replicas))
    broker_count, topic_count, partition_count = life.size
    history = GeneratedHistory(
        folder=folder,
        nodes=nodes,
        cluster_id=cluster_id,
        seed=seed,
        log_end=life.mark.log_end,
        head=life.mark.head,
        batches=batches,
        segments=segments.count,
        checkpoints=tuple(checkpoints.written),
        first_ms=START_MS,
        last_ms=life.mark.timestamp_ms,
        brokers=broker_count,
        topics=topic_count,
        partitions=partition_count,
        facts=life.facts,
    )
    RealDisk(folder).replace(STORY, _story(history))
    return history


class _Segments:
    """The ledger's files on all nodes, written alike."""

    def __init__(self, disks: list[RealDisk], cluster_id: str, segment_bytes: int) -> None:
        self._disks = disks
        self._cluster_id = cluster_id
        self._segment_bytes = segment_bytes
        self._mark = LogMark.beginning(cluster_id)
        self._files: list[AppendFile] = []
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._size = self._header_length = 0
        self.count = 0

    def add(self, batch: Batch) -> None:
        length = len(batch.encoded)
        if not self.count or must_roll(
            self._size, self._header_length, length, self._segment_bytes
        ):
            self._roll()
        self._put(batch.encoded)
        self._mark = self._mark.after(batch)

    def _roll(self) -> None:
        self.close()
        name = f"{LOG_FOLDER}/{segment_name(self._mark.log_end)}"
        self._files = [disk.open(name) for disk in self._disks]
        header = SegmentHeader(self._cluster_id, self._mark).encode()
        self._header_length, self._size = len(header), 0
        self.count += 1
        self._put(header)

    def _put(self, data: bytes) -> None:
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        self._size += len(data)
        if self._waiting_bytes >= _BUFFER_BYTES:
            self._flush()

    def _flush(self) -> None:
        data = b"".join(self._waiting)
        for file in self._files:
            file.append(data)
        self._waiting.clear()
        self._waiting_bytes = 0

    def close(self) -> None:
        """Finish the segment: written and synced."""
        self._flush()
        for file in self._files:
            file.sync()
            file.close()
        self._files = []


class _Checkpoints:
    """The image, and its checkpoints on all nodes."""

    def __init__(self, disks: list[RealDisk], cluster_id: str, every: int, life: Life) -> None:
        self._disks: list[Disk] = list(disks)
        self._cluster_id = cluster_id
        self._every = every
        self._next = every
        self._life = life
        self.written: list[int] = []

    def follow(self, batch: Batch) -> None:
        """Write a checkpoint behind a batch, if it is time and an image is built there."""
        end = batch.header.end_offset
        if not self._every or end < self._next:
            return
        image = self._life.image
        if image.offset == end and image.transaction is None:
            self._write(image, batch.hash)
            self._next = (end // self._every + 1) * self._every

    def _write(self, image: MetadataImage, chain_hash: bytes) -> None:
        assert image.state_hash is not None
        header = CheckpointHeader(
            cluster_id=self._cluster_id,
            offset=image.offset,
            epoch=image.epoch,
            timestamp_ms=image.timestamp_ms,
            chain_hash=chain_hash,
            state_hash=image.state_hash.encode(),
            generation=image.quorum.generation,
            voters=encode_record(VotersRecord(image.quorum.voters)),
            format=format_of(image),
        )
        pieces: list[bytes] = []
        for _ in append_checkpoint(pieces.append, header, image_frames(image, header.format)):
            pass  # Nobody waits meanwhile.
        whole = b"".join(pieces)
        for disk in self._disks:
            disk.replace(f"{FOLDER}/{header.id.name}", whole)
        self.written.append(image.offset)


def _manifest(cluster_id: str, mark: LogMark, replicas: int) -> bytes:
    """Return a manifest whose mark is the log's end."""
    voters = tuple(
        api.Voter(number, bytes(16), f"controller-{number}.example.net", 9091)
        for number in range(1, replicas + 1)
    )
    entry = b"", 1, mark.epoch
    return encode_manifest(
        JournalManifest(cluster_id, entry, (b"", 2, mark.epoch), mark.encode(), voters)
    )


def _story(history: GeneratedHistory) -> bytes:
    """Return what is worth finding again, for people and scripts."""
    told = {
        "clusterId": history.cluster_id,
        "seed": history.seed,
        "logEnd": history.log_end,
        "head": history.head.hex(),
        "story": history.story,
        "facts": [fact._asdict() for fact in history.facts],
    }
    return msgspec.json.format(msgspec.json.encode(told), indent=1) + b"\n"
