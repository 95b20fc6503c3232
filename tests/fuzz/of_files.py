"""Targets: records, and the files of ledgers, archives, checkpoints and backups."""

from functools import cache

import msgspec

from ledger.batch import parse, seal
from ledger.chain import LogMark, first_hash
from ledger.checker import BadSegmentError, SegmentChecker
from ledger.errors import LedgerError, UnknownFormatError
from ledger.frame import FORMAT
from ledger.receipts import Receipt, parse_receipt
from ledger.segments import segment_name
from logberg.backups.backup_format import BackupEncoder, BackupError, BackupHeader, SavedVoter
from logberg.backups.reading import verified_parts
from metadata.codec import (
    RecordDecodeError,
    decode_record,
    decode_records,
    encode_record,
    encode_records,
    iterate_records,
)
from metadata.image.replay_error import ReplayError
from metadata.messages.records_json import record_to_json
from snapshots.checkpoint import COLUMNS_FORMAT, CheckpointChecker
from snapshots.errors import CheckpointError
from snapshots.loading import image_of
from snapshots.store import LoadedCheckpoint
from tests.fuzz import repairs
from tests.fuzz.target import FuzzTarget
from tests.golden import checkpoint_write, ledger_write
from tests.unit.snapshots import column_cases

_PIECE = 4096


def _read_records(data: bytes) -> None:
    records = decode_records(data)
    assert encode_records(records) == data
    assert list(iterate_records(data)) == records
    for record in records:
        record_to_json(record)
        assert decode_record(encode_record(record)) == record


@cache
def _record_seeds() -> list[bytes]:
    found = [encode_records([one]) for one in checkpoint_write.records()]
    return [*found, encode_records(checkpoint_write.records()[:3]), b"\x90"]


def _read_batch(data: bytes) -> None:
    batch = parse(data)
    assert data.startswith(batch.encoded)
    assert seal(batch.header, batch.records) == batch
    batch.header.cause(bytes.hex)


@cache
def _segments() -> list[bytes]:
    return [one.read_bytes() for one in sorted((ledger_write.FOLDER / "log").glob("*.log"))]


@cache
def batch_seeds() -> list[bytes]:
    """Return the shortest of the golden batches, each alone."""
    found: list[bytes] = []
    for segment in _segments():
        checker = SegmentChecker(
            ledger_write.CLUSTER,
            int.from_bytes(segment[12:20], "big"),
            on_batch=lambda batch, _end: found.append(batch.encoded),
        )
        checker.feed(segment)
    return sorted(found, key=len)[:8]


def _read_segment(data: bytes) -> None:
    """At once and in pieces: both must find the same."""
    found = _checked([data])
    assert found == _checked([data[at : at + 512] for at in range(0, len(data), 512)])
    if isinstance(found, Exception):
        raise found


def _checked(pieces: list[bytes]) -> tuple[LogMark, int] | Exception:
    checker = SegmentChecker(ledger_write.CLUSTER, 0)
    try:
        for piece in pieces:
            checker.feed(piece)
        checker.finish()
    except (BadSegmentError, UnknownFormatError) as error:
        return _Same(f"{type(error).__name__}: {error}")
    return checker.mark, checker.batches


class _Same(Exception):  # noqa: N818 - a refusal that can be compared
    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and str(self) == str(other)

    __hash__ = Exception.__hash__


def _segment_seeds() -> list[bytes]:
    return _segments()[:1]


def _read_receipt(data: bytes) -> None:
    receipt = parse_receipt(data)
    assert receipt.encode() == data
    assert receipt.path


def _receipt_seeds() -> list[bytes]:
    start, end = LogMark(0, bytes(32), 0, 0), LogMark(9, b"h" * 32, 3, 1_700_000_000_000)
    return [Receipt("a-cluster", start, end, 700, bytes(32)).encode()]


def _read_checkpoint(data: bytes) -> None:
    checker, blocks = CheckpointChecker(), []
    for at in range(0, len(data), _PIECE):
        blocks += checker.feed(data[at : at + _PIECE])
    header = checker.finish()
    loaded = LoadedCheckpoint(header, tuple(blocks), len(data))
    for _ in image_of(loaded):
        pass
    list(loaded.records())


def _checkpoint_seeds() -> list[bytes]:
    """Small ones, in both formats: long seeds slow a fuzzer down."""
    return [
        column_cases.file_of(column_cases.SMALL, COLUMNS_FORMAT),
        column_cases.file_of(column_cases.SMALL, FORMAT),
        column_cases.file_of(column_cases.image_of(column_cases.many(1, 70)), COLUMNS_FORMAT),
    ]


class _InMemory:
    location = "the fuzzed backup"

    def __init__(self, data: bytes) -> None:
        self._data = data

    def size(self) -> int:
        return len(self._data)

    def read(self, position: int, length: int) -> bytes:
        return self._data[position : position + length]


def _read_backup(data: bytes) -> None:
    for _ in verified_parts(_InMemory(data)):
        pass


@cache
def _backup_seeds() -> list[bytes]:
    """One with the first golden segment."""
    segment, encoder = _segments()[0], BackupEncoder()
    checker = SegmentChecker(ledger_write.CLUSTER, 0)
    checker.feed(segment)
    start = LogMark(0, first_hash(ledger_write.CLUSTER), 0, 0)
    voters = (SavedVoter(1, bytes(16), "127.0.0.1", 9091),)
    header = BackupHeader(
        ledger_write.CLUSTER, 1, "0.2.0", "a folder", start, checker.mark, "", voters
    )
    parts = [
        encoder.header(header),
        encoder.file(f"log/{segment_name(0)}", len(segment)),
        encoder.piece(segment),
    ]
    return [b"".join((*parts, encoder.footer()[1]))]


TARGETS = (
    FuzzTarget(
        "records",
        "the records of a batch or a checkpoint, from a leader or a file",
        _read_records,
        (RecordDecodeError,),
        _record_seeds,
    ),
    FuzzTarget(
        "batches",
        "batches, from the controller that a broker's agent fetches from",
        _read_batch,
        (LedgerError,),
        batch_seeds,
        repairs.frames,
    ),
    FuzzTarget(
        "segments",
        "segments of a ledger, from an archive, a peer or a folder",
        _read_segment,
        (_Same,),
        _segment_seeds,
        repairs.frames,
    ),
    FuzzTarget(
        "receipts",
        "receipts of archived segments, from a folder",
        _read_receipt,
        (LedgerError,),
        _receipt_seeds,
        repairs.frames,
    ),
    FuzzTarget(
        "checkpoints",
        "checkpoints, from the leader or a file",
        _read_checkpoint,
        (LedgerError, CheckpointError, RecordDecodeError, ReplayError, msgspec.ValidationError),
        _checkpoint_seeds,
        repairs.frames,
    ),
    FuzzTarget(
        "backups",
        "backups, from a folder or object storage",
        _read_backup,
        (BackupError,),
        _backup_seeds,
        repairs.frames,
    ),
)
