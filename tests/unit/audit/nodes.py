"""Folders of nodes with legal histories, as a controller leaves them: segments and checkpoints."""

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import structlog

from ledger.batch import Batch, BatchHeader, Provenance, parse, seal
from ledger.ledger import Ledger
from metadata.codec import encode_record, encode_records
from metadata.image import EMPTY, MetadataDelta, MetadataImage, image_to_records
from metadata.records import NoOpRecord, Record
from runtime.disk.real import RealDisk
from snapshots.checkpoint import (
    CheckpointHeader,
    Footer,
    encode_blocks,
    encode_footer,
    encode_header,
)
from tests.histories import History, HistoryBatch

CLUSTER = "audited-cluster"


class InlineDisk(RealDisk):
    """Runs background work at once, because these tests have no loop."""

    def in_background(self, work, on_done):
        on_done(work(), None)


def write_node(
    folder: Path,
    batches: int = 60,
    seed: int = 1,
    segment_bytes: int = 8_192,
    checkpoint_every: int = 0,
    written: Iterable[HistoryBatch] | None = None,
    cluster: str = CLUSTER,
    provenance: Provenance | None = None,
) -> list[MetadataImage]:
    """Write a node's folder; return the image after each batch, with state hashes."""
    disk = InlineDisk(folder)
    disk.make_folder("log")
    disk.make_folder("checkpoints")
    ledger = Ledger.open(
        disk, cluster, synced_to=None, segment_bytes=segment_bytes, log=structlog.get_logger()
    )
    images: list[MetadataImage] = []
    image = EMPTY
    due = checkpoint_every
    for number, batch in enumerate(History(seed).batches(batches) if written is None else written):
        header = BatchHeader(
            batch.base_offset,
            len(batch.records),
            batch.epoch,
            batch.timestamp_ms,
            provenance
            or Provenance(principal="User:alice", operation="Test", reason=f"step {number}"),
            ledger.head,
        )
        ledger.accept(batch.epoch, seal(header, encode_records(batch.records)))
        image = folded(image, batch)
        images.append(image)
        if checkpoint_every and image.offset >= due and image.transaction is None:
            write_checkpoint(folder, image, ledger.head, cluster)
            due = image.offset + checkpoint_every
    ledger.close()
    disk.close()
    return images


def folded(image: MetadataImage, batch: HistoryBatch) -> MetadataImage:
    delta = MetadataDelta(image)
    delta.replay_all(batch.records, batch.base_offset)
    delta.finish_batch(batch.end_offset, batch.epoch, batch.timestamp_ms)
    return delta.apply()


def write_checkpoint(
    folder: Path,
    image: MetadataImage,
    head: bytes,
    cluster: str = CLUSTER,
    records: Iterable[Record] | None = None,
    state_hash: bytes | None = None,
) -> Path:
    """Write a checkpoint with correct checksums, whatever its content."""
    assert image.state_hash is not None
    header = CheckpointHeader(
        cluster_id=cluster,
        offset=image.offset,
        epoch=image.epoch,
        timestamp_ms=image.timestamp_ms,
        chain_hash=head,
        state_hash=image.state_hash.encode() if state_hash is None else state_hash,
    )
    encoded = map(encode_record, image_to_records(image) if records is None else records)
    frames = [encode_header(header)]
    count = 0
    for some, frame in encode_blocks(encoded):
        frames.append(frame)
        count += some
    digest = sha256(b"".join(frames)).digest()
    frames.append(encode_footer(Footer(len(frames) - 1, count, digest)))
    path = folder / "checkpoints" / header.id.name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(frames))
    return path


def frames(path: Path) -> tuple[bytes, list[bytes]]:
    """A segment's header, and its batches."""
    data = path.read_bytes()
    position = int.from_bytes(data[8:12], "big")
    header, found = data[:position], []
    while position < len(data):
        batch = parse(data, position)
        found.append(batch.encoded)
        position += len(batch.encoded)
    return header, found


def rewritten(batch: Batch) -> bytes:
    """A batch with other records and a right CRC."""
    header = batch.header
    fields = {name: getattr(header, name) for name in header.__struct_fields__}
    records = encode_records([NoOpRecord()] * header.count)
    return seal(BatchHeader(**fields), records).encoded
