"""Writes the vectors of replay: `python -m tests.reference.vectors_write`.

Rule: a vector never changes; the script only adds those that are missing. A new record gets a
folder of its own in `SEEDS`, with a seed whose history holds it. The product writes the vectors and
the reference judges them, so this file imports the product and is no part of the reference.
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
SEEDS = {
    ".": 5,
    "cluster-key": 34,
    "coordination": 1,
    "bridge": 15,
    "attempts": 651,
    "credentials": 9,
    "heads": 19,
    "erasures": 9,
}
"""The seed of the history in each folder."""
BATCHES = 90


def write(folder: Path, seed: int) -> None:
    """Write a ledger of one segment, and the state hash at the end of each batch."""
    mark, image = LogMark.beginning(CLUSTER), EMPTY
    content = SegmentHeader(CLUSTER, mark).encode()
    states = {}
    for made in History(seed).batches(BATCHES):
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
    (folder / "log").mkdir(parents=True)
    (folder / "log" / name).write_bytes(content)
    (folder / "states.json").write_text(json.dumps(states, indent=1) + "\n")


if __name__ == "__main__":
    for name, seed in SEEDS.items():
        if not (FOLDER / name / "states.json").exists():
            write(FOLDER / name, seed)
