"""A log that was cut: what came before is a checkpoint, and its segments are gone."""

from hashlib import sha256
from pathlib import Path

from ledger.batch import Batch
from metadata.codec import decode_records
from metadata.image import EMPTY, MetadataDelta, MetadataImage
from snapshots.checkpoint import (
    CheckpointHeader,
    Footer,
    encode_footer,
    encode_header,
)
from snapshots.packing import image_frames
from tests.spark.log_writer import CLUSTER_ID, LogWriter


def image_of(batches: list[Batch]) -> MetadataImage:
    """The live image behind these batches, from the first of all."""
    delta = MetadataDelta(EMPTY)
    for batch in batches:
        header = batch.header
        delta.replay_all(decode_records(batch.records), header.base_offset)
        delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
    return delta.apply()


def cut_log(log: LogWriter, version: int = 2) -> int:
    """Cut at the first segment behind the middle that begins outside of a transaction.

    `version` is the format of the checkpoint.
    """
    for path in log.segments[len(log.segments) // 2 :]:
        before = [b for b in log.batches if b.header.base_offset < int(path.stem)]
        image = image_of(before)
        if image.transaction is None:
            write_checkpoint(log.folder, image, before[-1].hash, version)
            for gone in log.segments:
                if int(gone.stem) < image.offset:
                    gone.unlink()
            return image.offset
    raise AssertionError("a transaction is open at each segment's beginning")


def write_checkpoint(folder: Path, image: MetadataImage, head: bytes, version: int) -> None:
    assert image.state_hash is not None
    header = CheckpointHeader(
        CLUSTER_ID,
        image.offset,
        image.epoch,
        image.timestamp_ms,
        head,
        image.state_hash.encode(),
        image.quorum.generation,
        format=version,
    )
    path = folder / "checkpoints" / header.id.name
    path.parent.mkdir(exist_ok=True)
    content = encode_header(header)
    blocks = records = 0
    for count, block in filter(None, image_frames(image, version)):
        content += block
        blocks += 1
        records += count
    path.write_bytes(
        content + encode_footer(Footer(blocks, records, sha256(content).digest()), version)
    )
