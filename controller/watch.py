"""Reading the log over HTTP, once or again and again.

Rule: whole batches as they stand on disk, committed ones, and none of an open transaction: what
a watcher sees has happened. Any node answers, from its own ledger.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from controller.describe import readable_offset
from controller.parked import Parked
from controller.queries import whole_number
from ledger.batch import Batch, parse
from ledger.errors import DamagedLedgerError, HistoryMissingError
from ledger.ledger import Ledger
from metadata.codec import decode_records
from metadata.errors import ErrorCode, QuorateError
from metadata.image import MetadataImage
from metadata.messages import ReadLogReply, ReadRecordsReply
from metadata.messages.records_json import record_to_json
from metadata.uuids import uuid_text
from runtime.requests import Request

MAX_BYTES_DEFAULT = 1024 * 1024
MAX_BYTES = 8 * 1024 * 1024
WAIT_MS_MAX = 60_000
OnAnswer = Callable[[msgspec.Struct | QuorateError], None]


class Watch:
    """Answers `GET /v1/log`."""

    def __init__(
        self,
        ledger: Callable[[], Ledger],
        image: Callable[[], MetadataImage],
        parked: Parked,
        on_damaged: Callable[[DamagedLedgerError], None],
    ) -> None:
        self._ledger = ledger
        self._image = image
        self._parked = parked
        self._on_damaged = on_damaged

    def read(self, request: Request, on_answer: OnAnswer) -> None:
        """Answer with batches; if there are none yet, when there are, or when the wait is over."""
        try:
            offset = whole_number(request.query, "offset", 0)
            max_bytes = min(whole_number(request.query, "maxBytes", MAX_BYTES_DEFAULT), MAX_BYTES)
            wait_ms = min(whole_number(request.query, "waitMs", 0), WAIT_MS_MAX)
            in_words = _in_words(request.query.get("format", "batches"))
            batches = self._find(offset, max_bytes)
        except QuorateError as error:
            on_answer(error)
            return
        if batches or not wait_ms:
            on_answer(self._reply(offset, batches, in_words))
            return

        def release() -> None:
            try:
                on_answer(self._reply(offset, self._find(offset, max_bytes), in_words))
            except QuorateError as error:
                on_answer(error)

        self._parked.park(wait_ms / 1000, release)

    def _find(self, offset: int, max_bytes: int) -> list[bytes]:
        end = readable_offset(self._image())
        if offset > end:
            raise QuorateError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is beyond the end of the log that may be read here, {end}",
            )
        try:
            return self._ledger().read_from(offset, max_bytes, end)
        except HistoryMissingError as error:
            raise QuorateError(ErrorCode.OFFSET_OUT_OF_RANGE, str(error)) from None
        except DamagedLedgerError as error:
            self._on_damaged(error)
            raise QuorateError(ErrorCode.STORAGE_ERROR, str(error)) from None

    def _reply(self, offset: int, batches: list[bytes], in_words: bool) -> msgspec.Struct:
        ledger, image = self._ledger(), self._image()
        parsed = [parse(batch) for batch in batches]
        first = parsed[0].header.base_offset if parsed else offset
        next_offset = parsed[-1].header.end_offset if parsed else offset
        if in_words:
            return ReadRecordsReply(
                offset=first,
                next_offset=next_offset,
                log_start=ledger.log_start,
                high_watermark=readable_offset(image),
                batches=tuple(batch_in_words(batch) for batch in parsed),
                epoch=image.epoch,
            )
        return ReadLogReply(
            offset=first,
            next_offset=next_offset,
            log_start=ledger.log_start,
            high_watermark=readable_offset(image),
            batches=tuple(batches),
            epoch=image.epoch,
        )


def batch_in_words(batch: Batch) -> dict[str, Any]:
    """A batch for people: its envelope and its records."""
    header, provenance = batch.header, batch.header.provenance
    envelope: dict[str, Any] = {
        "principal": provenance.principal,
        "authMethod": provenance.auth_method,
        "onBehalfOf": provenance.on_behalf_of,
        "clientAddress": provenance.client_address,
        "clientId": provenance.client_id,
        "requestId": uuid_text(provenance.request_id) if provenance.request_id else "",
        "operation": provenance.operation,
        "reason": provenance.reason,
    }
    return {
        "offset": header.base_offset,
        "endOffset": header.end_offset,
        "epoch": header.epoch,
        "timestampMs": header.timestamp_ms,
        **{name: value for name, value in envelope.items() if value},
        "hash": batch.hash.hex(),
        "records": [record_to_json(record) for record in decode_records(batch.records)],
    }


def _in_words(text: str) -> bool:
    if text not in ("batches", "json"):
        raise QuorateError(ErrorCode.INVALID_REQUEST, f"format: {text[:50]!r}; batches or json")
    return text == "json"
