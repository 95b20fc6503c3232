"""Writes the golden checkpoint of format 2: `python -m tests.golden.checkpoint_write`.

Rule: these files never change, since checkpoints with those bytes exist. Run the script again only
for a new format, which gets files of its own.
"""

import json
from pathlib import Path
from typing import Any

from metadata.codec import encode_record
from metadata.features import COLUMNS_FROM, LOGBERG_VERSION
from metadata.image import MetadataImage, image_from_records
from metadata.records import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    Record,
    TopicRecord,
)
from metadata.state_hash import StateHash
from snapshots.checkpoint import CheckpointHeader, CheckpointId
from snapshots.packing import image_frames
from snapshots.topic_block import RECORDS_MAX, decode_topics
from tests.golden.ledger_write import CLUSTER, digest
from tests.unit.snapshots.column_cases import column, loaded, sealed

FOLDER = Path(__file__).parent / "checkpoint-format-2"
ID = CheckpointId(4_711, 12)
FORMAT_1 = "in-format-1.checkpoint"
"""The same state in format 1."""


def uuid(text: str) -> bytes:
    return digest(text)[:16]


def records() -> list[Record]:
    """Each choice of the format at least once: widths, exceptions, gaps, a topic that goes on."""
    places = [uuid(f"directory {number}") for number in range(4)]
    found: list[Record] = [
        FeatureLevelRecord(LOGBERG_VERSION, COLUMNS_FROM),
        FeatureLevelRecord("metadata.version", 33),
    ]
    topics = sorted((uuid(f"topic {number}"), number) for number in range(5))
    for topic_id, number in topics:
        found.append(TopicRecord(f"thema-{number}-ß", topic_id))
        match number:
            case 0:  # no partitions
                partitions = []
            case 1:  # gaps, wide numbers, nobody leads
                partitions = [
                    PartitionRecord(one, topic_id, (one,), (), (), (), -1, 2**31 - 1, -(2**31), 1)
                    for one in (0, 3, 70_000, 2**31 - 1)
                ]
            case 2:  # directories, all kinds of exceptions
                partitions = [
                    PartitionRecord(
                        one,
                        topic_id,
                        (1, 300, 5),
                        (5, 1),
                        (300,) if one == 1 else (),
                        (70_000, 5) if one == 2 else (),
                        5,
                        one,
                        256 * one,
                        0,
                        (places[one], places[3], places[0]),
                        (300,),
                        (1, 300) if one == 2 else None,
                    )
                    for one in range(3)
                ]
            case 3:  # no replicas
                partitions = [PartitionRecord(0, topic_id, (), (), (), (), -1, 0, 0)]
            case _:  # goes on in the next block
                partitions = [
                    PartitionRecord(one, topic_id, (1, 2), (1, 2), (), (), 1 + one % 2, 7, 7)
                    for one in range(RECORDS_MAX)
                ]
        found += partitions
    return [*found, ConfigRecord(4, "", "min.insync.replicas", "2")]


def image() -> MetadataImage:
    return image_from_records(records(), ID.offset, ID.epoch, 1_763_683_200_000)


def file(version: int) -> bytes:
    """The checkpoint in this format."""
    state = image()
    header = CheckpointHeader(
        CLUSTER,
        ID.offset,
        ID.epoch,
        state.timestamp_ms,
        digest("the chain"),
        (state.state_hash or StateHash()).encode(),
        3,
        format=version,
    )
    packed = [one for one in image_frames(state, version) if one is not None]
    return sealed(header, (frame for _, frame in packed), sum(count for count, _ in packed))


COLUMNS = ((5, 9), (-1, -1, -1), (0, 255), (0, 256), (7, 65_543), (-(2**31), 2**31 - 1), ())


def vectors() -> dict[str, Any]:
    """What a reader finds: the header, columns, and a block of two records part by part."""
    whole = loaded(file(2))
    parts = {
        "number of topics": (1).to_bytes(4, "big"),
        "continued": b"\0",
        "lengths of names": column(1),
        "names": b"t",
        "ids": uuid("topic"),
        "counts": column(1),
        "first numbers": column(4),
        "other numbers": b"",
        "lengths of replicas": column(3),
        "replicas": column(1, 2, 258),
        "directories known": column(1),
        "size of the table": (2).to_bytes(4, "big"),
        "table": b"".join(sorted((uuid("a"), uuid("b")))),
        "directories": column(0, 1, 0),
        "isr": (1).to_bytes(4, "big") + column(0) + column(2) + column(258, 1),
        "removing": bytes(4),
        "adding": bytes(4),
        "elr": (1).to_bytes(4, "big") + column(0) + column(1) + column(2),
        "last known elr": bytes(4),
        "leader": column(258),
        "leader epoch": column(3),
        "partition epoch": column(8),
        "recovery": column(0),
    }
    block = decode_topics(b"".join(parts.values()), 2, {}.setdefault)
    return {
        "cluster_id": whole.header.cluster_id,
        "generation": whole.header.generation,
        "state_hash": whole.header.state_hash.hex(),
        "blocks": [[block.of_topics, block.records] for block in whole.blocks],
        "columns": [[values, column(*values).hex()] for values in COLUMNS],
        "block": {name: part.hex() for name, part in parts.items()},
        "block_records": [encode_record(record).hex() for record in block.records()],
    }


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / ID.name).write_bytes(file(2))
    (FOLDER / FORMAT_1).write_bytes(file(1))
    (FOLDER / "vectors.json").write_text(json.dumps(vectors(), indent=1) + "\n")


if __name__ == "__main__":
    main()
