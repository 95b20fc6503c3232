"""A replica in memory for jobs, without files.

Rule: it returns whole batches from the one that holds `start` to the last that begins before `end`,
as `ledger.reader` does.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import msgspec

from ledger.batch import ACTED_AS, Batch, BatchHeader, Provenance, seal
from ledger.chain import first_hash
from metadata.codec import encode_records
from metadata.records import ConfigRecord, Record
from tests.histories import History, HistoryBatch

CLUSTER = "audited-cluster"
MIN_ISR = ("1", "2", "3", "0", "", "delete", "٢", "0002", "-1", "2000000000", None)
PEOPLE = ("User:alice", "User:bob", "Broker:3", "Controller:1")


class MemoryReader:
    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = batches
        self.notes: list[str] = []
        self.cluster_id = CLUSTER
        self.log_start = 0
        self.log_end = batches[-1].header.end_offset if batches else 0

    def batches(self, start: int | None = None, end: int | None = None) -> Iterator[Batch]:
        for batch in self._batches:
            if end is not None and batch.header.base_offset >= end:
                return
            if batch.header.end_offset > (start or 0):
                yield batch


def replica_of(batches: Iterable[Batch], name: str = "controller-1") -> Any:
    """Return a replica that holds just these batches."""
    kept = list(batches)
    disk = SimpleNamespace(list=lambda _folder: [])
    return SimpleNamespace(name=name, location=name, disk=disk, reader=lambda: MemoryReader(kept))


def seal_all(written: Iterable[HistoryBatch]) -> list[Batch]:
    """Seal batches that follow each other; the principal changes from batch to batch."""
    head, sealed = first_hash(CLUSTER), []
    for number, one in enumerate(written):
        provenance = Provenance(
            principal=PEOPLE[number % len(PEOPLE)],
            on_behalf_of="User:carol" if number % len(PEOPLE) == 2 else "",
            operation=("CreateTopics", "AlterPartition", "Heartbeat")[number % 3],
            request_id=number.to_bytes(16, "big") if number % 2 else b"",
            reason=f"step {number}",
        )
        header = BatchHeader(
            one.base_offset,
            len(one.records),
            one.epoch,
            one.timestamp_ms,
            provenance,
            head,
            {ACTED_AS: b"Broker:9"} if number % 5 == 1 else {},
        )
        batch = seal(header, encode_records(one.records))
        head = batch.hash
        sealed.append(batch)
    return sealed


def history(seed: int, count: int) -> list[HistoryBatch]:
    """Return a legal history with many values of min.insync.replicas."""
    dice = random.Random(seed)

    def spiced(record: Record) -> Record:
        if isinstance(record, ConfigRecord) and record.name == "min.insync.replicas":
            return msgspec.structs.replace(record, value=dice.choice(MIN_ISR))
        return record

    return [
        one._replace(records=tuple(spiced(record) for record in one.records))
        for one in History(seed).batches(count)
    ]


def logged(*groups: Sequence[Record], step_ms: int = 1_000) -> list[Batch]:
    """Return batches of these records, one second apart, epoch 1."""
    written, offset = [], 0
    for number, records in enumerate(groups):
        written.append(
            HistoryBatch(offset, 1, 1_700_000_000_000 + number * step_ms, tuple(records))
        )
        offset += len(records)
    return seal_all(written)
