"""A checkpoint of ours as one of Kafka's snapshots: record batches with offsets of their own.

    control batch   SnapshotHeader, KRaftVersion, Voters           (KIP-630, 853)
    data batches    metadata.version, the other levels, then all that Kafka's image has a place for
    data batches    the records that hold secrets
    control batch   SnapshotFooter

Rule: the same checkpoint and cluster key give the same bytes. What only we have is left out:
offsets in a snapshot number nothing. Records with secrets stand last, so that the caller can keep
them off the disk (ADR 0031, 0071).
"""

from collections.abc import Generator, Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

from kafka_listener.projection.batch_projection import (
    BatchProjection,
    KeyAndValue,
    control_key,
    control_record,
    encode_run,
)
from kafka_listener.projection.clear_values import may_hold_secret
from kafka_listener.projection.log_facts import FIRST_LEVEL, level_set_by
from kafka_listener.projection.record_versions import is_shown
from kafka_listener.wire.messages import encode_message
from metadata.records import (
    BeginEpochRecord,
    ClusterGenerationRecord,
    ClusterKeyRecord,
    EpochStartRecord,
    FeatureLevelRecord,
    KRaftVersionRecord,
    Record,
    VotersRecord,
    ZkMigrationStateRecord,
)
from snapshots.checkpoint import CheckpointHeader

_BATCH_RECORDS: Final = 1000
_BATCH_BYTES: Final = 1024 * 1024
_STEP: Final = 64
_HEADER_TYPE, _FOOTER_TYPE = 3, 4
_HEAD: Final = (
    BeginEpochRecord,
    ClusterGenerationRecord,
    ClusterKeyRecord,
    EpochStartRecord,
    FeatureLevelRecord,
    KRaftVersionRecord,
    VotersRecord,
    ZkMigrationStateRecord,
)
"""The records with which a checkpoint begins: levels, and the facts about the quorum."""


class SnapshotPiece(NamedTuple):
    """The next bytes of a snapshot."""

    data: bytes
    secret: bool
    """It holds secrets in clear, or stands behind such a piece."""


class SnapshotProjection:
    """Projects one checkpoint."""

    def __init__(self, projection: BatchProjection, header: CheckpointHeader) -> None:
        self._projection = projection
        self._header = header
        self._offset = 0
        self._level = FIRST_LEVEL

    def pieces(self, records: Iterable[Record]) -> Generator[SnapshotPiece | None, None, None]:
        """Yield the snapshot from a checkpoint's records, and None where the caller may pause."""
        rest = iter(records)
        head, first = _head_of(rest)
        yield SnapshotPiece(self._first_batch(head), False)
        levels = sorted(
            (record for record in head if isinstance(record, FeatureLevelRecord)),
            key=lambda record: level_set_by(record) is None,
        )
        for level in levels:
            self._level = level_set_by(level) or self._level
        secrets: list[KeyAndValue] = []
        values: list[KeyAndValue] = []
        size = 0
        shown = (record for record in chain(levels, first, rest) if is_shown(record))
        for count, record in enumerate(shown, 1):
            value = self._projection.value_of(record, self._level)
            if may_hold_secret(record):
                secrets.append((None, value))
            else:
                values.append((None, value))
                size += len(value)
            if len(values) == _BATCH_RECORDS or size >= _BATCH_BYTES:
                yield SnapshotPiece(self._batch(values, control=False), False)
                values, size = [], 0
            elif not count % _STEP:
                yield None
        if values:
            yield SnapshotPiece(self._batch(values, control=False), False)
        for start in range(0, len(secrets), _BATCH_RECORDS):
            some = secrets[start : start + _BATCH_RECORDS]
            yield SnapshotPiece(self._batch(some, control=False), True)
        footer = encode_message("SnapshotFooterRecord", 0, {})
        yield SnapshotPiece(
            self._batch([(control_key(_FOOTER_TYPE), footer)], control=True), bool(secrets)
        )

    def _first_batch(self, head: list[Record]) -> bytes:
        said = {"LastContainedLogTimestamp": self._header.timestamp_ms}
        first = encode_message("SnapshotHeaderRecord", 0, said)
        values: list[KeyAndValue] = [(control_key(_HEADER_TYPE), first)]
        for kind in (KRaftVersionRecord, VotersRecord):
            values += [control_record(record) for record in head if type(record) is kind]
        return self._batch(values, control=True)

    def _batch(self, values: list[KeyAndValue], *, control: bool) -> bytes:
        header = self._header
        batch = encode_run(self._offset, header.epoch, header.timestamp_ms, values, control=control)
        self._offset = batch.end_offset
        return batch.data


def _head_of(records: Iterator[Record]) -> tuple[list[Record], list[Record]]:
    """Return the records of `_HEAD` with which a checkpoint begins, and the one behind them."""
    head: list[Record] = []
    for record in records:
        if not isinstance(record, _HEAD):
            return head, [record]
        head.append(record)
    return head, []
