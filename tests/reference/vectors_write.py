"""Writes the vectors of replay: `python -m tests.reference.vectors_write`.

Rule: what stands there stands for ever. It is written by the product and judged by the reference,
so this file imports the product and is no part of the reference.
"""

import json
from pathlib import Path

from ledger.batch import BatchHeader, Provenance, seal
from ledger.chain import LogMark
from ledger.segments import SegmentHeader, segment_name
from metadata.codec import encode_records
from metadata.image import EMPTY, MetadataDelta
from tests.histories import History

FOLDER = Path(__file__).parent / "vectors"
CLUSTER = "vectors-of-replay-0001"
SEED, BATCHES = 5, 90


def write() -> None:
    """Write a ledger of one segment, and the state hash at the end of each batch."""
    mark, image = LogMark.beginning(CLUSTER), EMPTY
    content = SegmentHeader(CLUSTER, mark).encode()
    states = {}
    for made in History(SEED).batches(BATCHES):
        header = BatchHeader(
            made.base_offset,
            len(made.records),
            made.epoch,
            made.timestamp_ms,
            Provenance(principal="User:vectors", operation="Vectors"),
            mark.head,
        )
        batch = seal(header, encode_records(made.records))
        content += batch.encoded
        mark = mark.after(batch)
        delta = MetadataDelta(image)
        delta.replay_all(made.records, made.base_offset)
        delta.finish_batch(made.end_offset, made.epoch, made.timestamp_ms)
        image = delta.apply()
        states[made.end_offset] = image.state_hash.encode().hex()
    name = Path(segment_name(0)).name
    (FOLDER / "log").mkdir(parents=True, exist_ok=True)
    (FOLDER / "log" / name).write_bytes(content)
    (FOLDER / "states.json").write_text(json.dumps(states, indent=1) + "\n")


if __name__ == "__main__":
    write()
