"""A report: what one controller counted, on its way to the leader.

Rule: a report is the encoding of its records, so what the leader writes is what was sent. Bytes of
another form count as not received. A report fits into one frame of the controllers' links; that of
an observer into one small message.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from controller.trail.counting import AttemptCounts, AttemptKind, Counted
from metadata.codec import RecordDecodeError, decode_records, encode_record, encode_records
from metadata.records import AttemptDetail, AttemptsRecord

REPORT: Final = b"\x0a"
"""The first byte of a report, among forwarded contacts and among small messages."""
REPORT_BYTES_MAX: Final = 16 * 1024
SMALL_REPORT_BYTES_MAX: Final = 500
"""Of an observer: `Quorum.tell` takes 512."""
_RECORDS_MAX: Final = 1_000
_SHORT_CHARS: Final = 40
_SHORTENED: Final = ("principal", "through", "operation", "resource", "address", "code", "reason")


def cut_report(
    counts: AttemptCounts,
    controller_id: int,
    life: bytes,
    number: int,
    total: int,
    *,
    small: bool,
) -> tuple[AttemptsRecord, ...]:
    """Take kinds out, the oldest first, as many as fit into a report; at least one.

    `total`: the attempts that this life has reported before.
    """
    records: list[AttemptsRecord] = []
    room = SMALL_REPORT_BYTES_MAX if small else REPORT_BYTES_MAX
    while len(counts):
        record = _record(*counts.first(), controller_id, life, number, total)
        if small:
            record = _shortened(record)
        room -= len(encode_record(record))
        if records and room < 0:
            break
        counts.take_first()
        records.append(record)
        total = record.total
    return tuple(records)


def encode_report(records: Sequence[AttemptsRecord]) -> bytes:
    """Return the bytes of a report."""
    return REPORT + encode_records(records)


def decode_report(controller_id: int, data: bytes) -> tuple[AttemptsRecord, ...] | None:
    """Return the records of a controller's report; None: it is none of this controller."""
    if data[:1] != REPORT or len(data) > REPORT_BYTES_MAX + len(REPORT) + 8:
        return None
    try:
        found = decode_records(data[len(REPORT) :])
    except RecordDecodeError:
        return None
    if not found or len(found) > _RECORDS_MAX:
        return None
    records = tuple(record for record in found if isinstance(record, AttemptsRecord))
    first, total = records[0] if records else None, None
    for record in records:
        if first is None or (record.life, record.number) != (first.life, first.number):
            return None
        sound = record.controller_id == controller_id and record.number > 0 < record.count
        if not sound or record.first_ms > record.last_ms:
            return None
        if total is not None and record.total != total + record.count:
            return None
        total = record.total
    return records if len(records) == len(found) else None


def _record(
    kind: AttemptKind, counted: Counted, controller_id: int, life: bytes, number: int, total: int
) -> AttemptsRecord:
    return AttemptsRecord(
        controller_id,
        life,
        number,
        int(kind.outcome),
        int(kind.detail),
        *kind[2:],
        counted.first_ms,
        counted.last_ms,
        counted.count,
        total + counted.count,
        counted.request,
        counted.client_id,
        counted.body_sha256,
        counted.answer,
    )


def _shortened(record: AttemptsRecord) -> AttemptsRecord:
    """Return a record that surely fits into a small report."""
    texts = {name: getattr(record, name) for name in _SHORTENED}
    short = {
        name: text
        if len(text.encode()) <= _SHORT_CHARS
        else text.encode()[: _SHORT_CHARS - 3].decode(errors="ignore") + "…"
        for name, text in texts.items()
    }
    none = {"request": "", "client_id": "", "body_sha256": "", "answer": ""}
    detail = min(record.detail, int(AttemptDetail.METADATA))
    return msgspec.structs.replace(record, detail=detail, **short, **none)
