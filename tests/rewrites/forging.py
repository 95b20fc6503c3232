"""A true log, and a forged one with right hashes, as batches and as folders."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import structlog

from ledger.batch import Batch, BatchHeader, Provenance, seal
from ledger.chain import LogMark
from ledger.ledger import Ledger
from metadata.codec import encode_records
from metadata.records import NoOpRecord, TopicRecord
from tests.unit.audit.nodes import InlineDisk
from tests.unit.broker_agent.fake_cluster import CLUSTER_ID

SEGMENT_BYTES = 8_192
_TERM = 1


def true_log(count: int) -> list[Batch]:
    """A log in which mallory creates topics."""
    found: list[Batch] = []
    mark = LogMark.beginning(CLUSTER_ID)
    for number in range(count):
        records = (TopicRecord(f"t-{number}", bytes(15) + bytes((number % 250 + 1,))),)
        who = Provenance(principal="User:mallory", operation="CreateTopics", reason="because")
        header = BatchHeader(mark.log_end, 1, _TERM, 1_000 + number, who, mark.head)
        batch = seal(header, encode_records(records))
        found.append(batch)
        mark = mark.after(batch)
    return found


def forged_log(true: Sequence[Batch], at: int, more: int) -> list[Batch]:
    """The same log, in which alice wrote batch `at`; all hashes are right again.

    `more` batches follow at its end.
    """
    found = list(true[:at])
    mark = LogMark.beginning(CLUSTER_ID)
    for batch in found:
        mark = mark.after(batch)
    for old in true[at:]:
        who = old.header.provenance
        if old is true[at]:
            who = msgspec.structs.replace(who, principal="User:alice")
        header = msgspec.structs.replace(old.header, provenance=who, previous_hash=mark.head)
        batch = seal(header, old.records)
        found.append(batch)
        mark = mark.after(batch)
    return extended(found, more)


def extended(log: Sequence[Batch], more: int) -> list[Batch]:
    """A log with further batches."""
    found = list(log)
    mark = LogMark.beginning(CLUSTER_ID)
    for batch in found:
        mark = mark.after(batch)
    for _ in range(more):
        who = Provenance(principal="Controller:1", operation="Test")
        header = BatchHeader(mark.log_end, 1, _TERM, mark.timestamp_ms + 1, who, mark.head)
        batch = seal(header, encode_records((NoOpRecord(),)))
        found.append(batch)
        mark = mark.after(batch)
    return found


def write_folder(folder: Path, log: Sequence[Batch]) -> Path:
    """Write a log as a node's folder."""
    disk = InlineDisk(folder)
    disk.make_folder("log")
    ledger = Ledger.open(
        disk,
        CLUSTER_ID,
        synced_to=None,
        segment_bytes=SEGMENT_BYTES,
        log=structlog.get_logger(),
    )
    for batch in log:
        ledger.accept(_TERM, batch)
    ledger.close()
    disk.close()
    return folder
