"""Writes a large log for `benchmarks.audit.core`: a node's folder.

Rule: batches, segments and checkpoints are those that a controller would write. The changes are
those of `benchmarks.image.replay`. The batches are small (20 records), as in a busy cluster; small
batches are also the slow case for a reader.
"""

import hashlib
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from benchmarks.image.replay import changes, creation
from ledger.batch import BatchHeader, Provenance, seal
from ledger.chain import LogMark
from ledger.segments import SEGMENT_BYTES, SegmentHeader, must_roll, segment_name
from metadata.codec import encode_record, encode_records
from metadata.image import EMPTY, MetadataDelta, MetadataImage, image_to_records
from metadata.image.metadata_image import hash_from_scratch
from metadata.records import Record
from snapshots.checkpoint import (
    CheckpointHeader,
    Footer,
    encode_blocks,
    encode_footer,
    encode_header,
)

CLUSTER = "audit-benchmark"
RECORDS_PER_BATCH = 20
CHECKPOINT_EVERY = 250_000
START_MS = 1_750_000_000_000
BATCH_MS = 100
_PRINCIPALS = ("Broker:3", "Broker:17", "Controller:1", "User:alice", "User:deploy")


class HistoryWriter:
    """Segments and checkpoints of one node, batch after batch."""

    def __init__(self, folder: Path, checkpoint_every: int = CHECKPOINT_EVERY) -> None:
        self._folder = folder
        for name in ("log", "checkpoints"):
            (folder / name).mkdir(parents=True)
        self.mark = LogMark(0, LogMark.beginning(CLUSTER).head, 0, START_MS)
        self.image: MetadataImage = EMPTY
        self._every = checkpoint_every
        self._delta = MetadataDelta(EMPTY, with_state_hash=False)
        self._size = self._header_length = 0
        self._begin_segment()

    def write(self, records: Iterable[Record], per_batch: int = RECORDS_PER_BATCH) -> None:
        """Append records in batches."""
        rest = iter(records)
        while some := tuple(islice(rest, per_batch)):
            self._append(some)

    def close(self) -> None:
        """End the last segment."""
        self._file.close()

    def settled(self) -> MetadataImage:
        """The image of what was written."""
        self.image = self._delta.apply()
        self._delta = MetadataDelta(self.image, with_state_hash=False)
        return self.image

    def _append(self, records: tuple[Record, ...]) -> None:
        mark = self.mark
        number = mark.log_end // RECORDS_PER_BATCH
        provenance = Provenance(
            principal=_PRINCIPALS[number % len(_PRINCIPALS)],
            auth_method="certificate",
            client_address="10.0.0.7:49152",
            client_id="agent",
            request_id=number.to_bytes(16, "big"),
            request_digest=hashlib.sha256(number.to_bytes(8, "big")).digest(),
            operation="AlterPartition",
        )
        header = BatchHeader(
            mark.log_end, len(records), 1, mark.timestamp_ms + BATCH_MS, provenance, mark.head
        )
        batch = seal(header, encode_records(records))
        if must_roll(self._size, self._header_length, len(batch.encoded), SEGMENT_BYTES):
            self._file.close()
            self._begin_segment()
        self._file.write(batch.encoded)
        self._size += len(batch.encoded)
        self._delta.replay_all(records, header.base_offset)
        self._delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
        self.mark = mark.after(batch)
        if self._every and mark.log_end // self._every != self.mark.log_end // self._every:
            self._checkpoint()

    def _begin_segment(self) -> None:
        previous = self.mark if self.mark.log_end else LogMark.beginning(CLUSTER)
        encoded = SegmentHeader(CLUSTER, previous).encode()
        self._file = (self._folder / "log" / segment_name(previous.log_end)).open("wb")
        self._file.write(encoded)
        self._size = self._header_length = len(encoded)

    def _checkpoint(self) -> None:
        image, mark = self.settled(), self.mark
        header = CheckpointHeader(
            cluster_id=CLUSTER,
            offset=mark.log_end,
            epoch=mark.epoch,
            timestamp_ms=mark.timestamp_ms,
            chain_hash=mark.head,
            state_hash=hash_from_scratch(image).encode(),
        )
        digest = hashlib.sha256()
        blocks = records = 0
        with (self._folder / "checkpoints" / header.id.name).open("wb") as file:
            frame = encode_header(header)
            digest.update(frame)
            file.write(frame)
            for count, frame in encode_blocks(map(encode_record, image_to_records(image))):
                digest.update(frame)
                file.write(frame)
                blocks, records = blocks + 1, records + count
            file.write(encode_footer(Footer(blocks, records, digest.digest())))


def write_history(
    folder: Path, records: int, *, partitions: int, per_batch: int = RECORDS_PER_BATCH
) -> HistoryWriter:
    """Write a node's folder: topics of a cluster first, then changes up to so many records."""
    writer = HistoryWriter(folder)
    writer.write(creation(partitions), per_batch)
    image = writer.settled()
    writer.write(_changes(image, records - writer.mark.log_end), per_batch)
    writer.close()
    return writer


def _changes(image: MetadataImage, count: int) -> Iterator[Record]:
    return chain.from_iterable([changes(image, count)]) if count > 0 else iter(())
