"""Writes the ledger's golden files: `python -m tests.golden.ledger_write`.

Rule: these files never change, since logs with those bytes exist. Run the script again only for a
new format, which gets files of its own.
"""

import json
import random
from hashlib import sha256
from pathlib import Path

import msgspec
import structlog

from ledger.batch import BatchHeader, Provenance, seal
from ledger.chain import LogMark, first_hash
from ledger.ledger import Ledger
from ledger.segments import SegmentHeader
from runtime.simulated.disk import SimulatedDisk
from runtime.simulated.disk_faults import DiskFaults
from runtime.simulated.platter import Platter
from runtime.simulated.process import SimulatedProcess
from runtime.simulated.world import World
from snapshots.checkpoint import CheckpointHeader
from snapshots.store import CheckpointStore

GOLDEN = Path(__file__).parent
FOLDER = GOLDEN / "ledger-format-1"
CLUSTER = "mkU0aGl2Q1-3fJv1sYw9Nw"
SEGMENT_BYTES = 2_000


def digest(text):
    return sha256(text.encode()).digest()


def batches():
    """Every shape: array heads, text beyond ASCII, extensions, epochs that rise, big numbers."""
    shapes = [
        (
            1,
            1,
            Provenance(principal="Controller:1", auth_method="internal", operation="BeginEpoch"),
        ),
        (
            3,
            1,
            Provenance(
                principal="User:alice",
                auth_method="certificate",
                client_address="192.0.2.7",
                client_id="cli-1",
                request_id=bytes.fromhex("01890a5dac96774bbcceb302099a8057"),
                request_digest=digest("a request"),
                operation="CreateTopics",
                reason="für die Prüfung ✓",
            ),
        ),
        (
            16,
            2,
            Provenance(
                principal="Broker:3",
                auth_method="certificate",
                on_behalf_of="User:bob",
                client_address="2001:db8::1",
                request_id=bytes(range(16)),
                request_digest=digest("another request"),
                operation="AlterConfigs",
                reason="r" * 300,
            ),
        ),
        (70, 2**33, Provenance()),
        (2, 2**33, Provenance(principal="User:carol", operation="CreateTopics")),
    ]
    mark = LogMark.beginning(CLUSTER)
    made = []
    for i, (count, epoch, provenance) in enumerate(shapes):
        header = BatchHeader(
            base_offset=mark.log_end,
            count=count,
            epoch=epoch,
            timestamp_ms=1_763_683_200_000 + 1_000 * (i // 2),
            provenance=provenance,
            previous_hash=mark.head,
            extensions={} if i != 2 else {1: b"", 200: b"ignored, but hashed", 70_000: b"\x00"},
        )
        records = msgspec.msgpack.encode([[2000, j, f"record {i}.{j}"] for j in range(count)])
        batch = seal(header, records)
        made.append((batch, mark))
        mark = mark.after(batch)
    return made, mark


def as_json(batch, before):
    header, provenance = batch.header, batch.header.provenance
    return {
        "base_offset": header.base_offset,
        "count": header.count,
        "epoch": header.epoch,
        "timestamp_ms": header.timestamp_ms,
        "previous_hash": header.previous_hash.hex(),
        "provenance": [
            field.hex() if isinstance(field, bytes) else field
            for field in msgspec.structs.astuple(provenance)
        ],
        "extensions": {str(key): value.hex() for key, value in header.extensions.items()},
        "records": batch.records.hex(),
        "hash": batch.hash.hex(),
        "encoded": batch.encoded.hex(),
        "mark_before": before.encode().hex(),
    }


def checkpoint_header(mark):
    return CheckpointHeader(
        cluster_id=CLUSTER,
        offset=mark.log_end,
        epoch=mark.epoch % 10**10,
        timestamp_ms=mark.timestamp_ms,
        chain_hash=mark.head,
        state_hash=digest("shared") + digest("controllers"),
        generation=4,
        voters=msgspec.msgpack.encode([201000, 1, [1, 2, 3]]),
        extensions={9: b"ignored, but hashed"},
    )


def checkpoint_records():
    return [msgspec.msgpack.encode([302, i, "p" * 400]) for i in range(170)]


def write():
    made, end = batches()
    world = World(1)
    process = SimulatedProcess(world, 1)
    platter = Platter(random.Random(1))
    disk = SimulatedDisk(process, platter, DiskFaults())
    log = structlog.get_logger()
    ledger = Ledger.open(disk, CLUSTER, synced_to=None, segment_bytes=SEGMENT_BYTES, log=log)
    for batch, _ in made:
        ledger.accept(batch.header.epoch, batch)
    store = CheckpointStore(disk, CLUSTER, process.clock, log)
    header = checkpoint_header(end)
    store.write(header, checkpoint_records(), lambda *_: None)
    world.run_for(10)
    for name, content in platter.snapshot().items():
        if name.startswith(("log/", "checkpoints/")):
            (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
            (FOLDER / name).write_bytes(content)
    vectors = {
        "cluster_id": CLUSTER,
        "first_hash": first_hash(CLUSTER).hex(),
        "batches": [as_json(batch, before) for batch, before in made],
        "mark": end.encode().hex(),
        "segment_header": {
            "mark": made[3][1].encode().hex(),
            "encoded": SegmentHeader(CLUSTER, made[3][1]).encode().hex(),
        },
        "checkpoint": {
            "cluster_id": CLUSTER,
            "generation": header.generation,
            "offset": header.offset,
            "epoch": header.epoch,
            "timestamp_ms": header.timestamp_ms,
            "chain_hash": header.chain_hash.hex(),
            "state_hash": header.state_hash.hex(),
            "voters": header.voters.hex(),
            "extensions": {str(key): value.hex() for key, value in header.extensions.items()},
            "records": len(checkpoint_records()),
        },
    }
    (GOLDEN / "ledger.json").write_text(json.dumps(vectors, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    write()
