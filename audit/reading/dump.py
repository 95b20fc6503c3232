"""The log as plain values: each batch with who, when and why, each record with its fields.

Rule: the output shows what is written, except secrets (SCRAM keys, configs that are passwords).
They are starred by default, because dumps end up in tickets. Times are UTC.
"""

import datetime as dt
from collections.abc import Iterator
from typing import Any

from audit.reading.callers import caller
from ledger.batch import Batch
from ledger.reader import LedgerReader
from metadata.codec import decode_records
from metadata.messages.records_json import record_to_json
from metadata.uuids import uuid_text


def dump(
    reader: LedgerReader,
    from_offset: int | None = None,
    to_offset: int | None = None,
    *,
    show_secrets: bool = False,
) -> Iterator[dict[str, Any]]:
    """Yield the batches of a range as plain values. Raises LedgerError, OSError."""
    for batch in reader.batches(from_offset, to_offset):
        yield batch_in_words(batch, show_secrets=show_secrets)


def batch_in_words(batch: Batch, *, show_secrets: bool = False) -> dict[str, Any]:
    """Return a batch as plain values, its records with their offsets."""
    header = batch.header
    return {
        "baseOffset": header.base_offset,
        "count": header.count,
        "epoch": header.epoch,
        "time": utc(header.timestamp_ms),
        **header.cause(uuid_text),
        "hash": batch.hash.hex(),
        "previousHash": header.previous_hash.hex(),
        "records": [
            {"offset": offset, **record_to_json(record, show_secrets=show_secrets)}
            for offset, record in enumerate(decode_records(batch.records), header.base_offset)
        ],
    }


def caller_of(batch: dict[str, Any]) -> str:
    """Return in one line who caused a batch. `batch` is a result of `batch_in_words`."""
    names = ("principal", "onBehalfOf", "authMethod", "clientAddress", "actedAs")
    return caller(*(batch.get(name, "") for name in names))


def utc(timestamp_ms: int) -> str:
    """Return a time in ISO 8601 with milliseconds, in UTC."""
    moment = dt.datetime.fromtimestamp(timestamp_ms / 1000, dt.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
