"""Answers `GET /v1/log`: reads the log, and waits for more of it.

An answer holds whole, committed batches as they are on disk, and none of an open transaction. So
everything that a watcher sees has happened. Any node answers, from its own ledger.

The ledger is read in pieces, and twice: first to find where the answer ends, then again while it is
sent. So no answer is ever in memory as a whole.
"""

from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple

from controller.http.describe import readable_offset
from controller.http.held_requests import HeldRequests
from controller.http.queries import whole_number
from controller.replica.batch_heads import head_of
from controller.storage.history import ReadableHistory
from ledger.batch import Batch, parse
from ledger.errors import DamagedLedgerError, HistoryMissingError, LedgerError, SegmentAwayError
from metadata.codec import iterate_records
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages import ReadLogReply, ReadRecordsReply
from metadata.messages.parts import LongMessage
from metadata.person_opener import NO_OPENER, PersonOpener
from metadata.uuids import uuid_text
from runtime.http.requests import Request

MAX_BYTES_DEFAULT = 1024 * 1024
MAX_BYTES = 8 * 1024 * 1024
WAIT_MS_MAX = 60_000
_PIECE_BYTES = 256 * 1024
"""Bytes of the ledger that are read and verified in one step: a millisecond or two."""
OnAnswer = Callable[[Generator[None, None, LongMessage] | LogbergError], None]


class Watch:
    """Answers `GET /v1/log`."""

    def __init__(
        self,
        history: ReadableHistory,
        image: Callable[[], MetadataImage],
        held_requests: HeldRequests,
        on_damaged: Callable[[DamagedLedgerError], None],
        opener: PersonOpener,
    ) -> None:
        """`opener` opens sealed addresses and names in answers in words."""
        self._opener = opener
        self._history = history
        self._image = image
        self._held_requests = held_requests
        self._on_damaged = on_damaged

    def read(self, request: Request, on_answer: OnAnswer) -> None:
        """Answer with batches. If there are none, wait for some, or until the wait is over."""
        try:
            offset = whole_number(request.query, "offset", 0)
            max_bytes = min(whole_number(request.query, "maxBytes", MAX_BYTES_DEFAULT), MAX_BYTES)
            wait_ms = min(whole_number(request.query, "waitMs", 0), WAIT_MS_MAX)
            in_words = _in_words(request.query.get("format", "batches"))
            found = self._find(offset, max_bytes)
        except LogbergError as error:
            on_answer(error)
            return
        except SegmentAwayError:

            def recalled(why: str) -> None:
                if why:
                    on_answer(LogbergError(ErrorCode.STORAGE_ERROR, why))
                else:
                    self.read(request, on_answer)

            self._history.recall(offset, recalled)
            return
        if found.batches or not wait_ms:
            on_answer(self._reply(found, max_bytes, in_words))
            return

        def release() -> None:
            try:
                on_answer(self._reply(self._find(offset, max_bytes), max_bytes, in_words))
            except SegmentAwayError:
                self.read(request, on_answer)
            except LogbergError as error:
                on_answer(error)

        self._held_requests.park(wait_ms / 1000, release)

    def _find(self, offset: int, max_bytes: int) -> "_Found":
        """Find the first piece of an answer. Raises LogbergError, SegmentAwayError."""
        up_to = readable_offset(self._image())
        if offset > up_to:
            raise LogbergError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is beyond {up_to}, the end of what can be read here",
            )
        try:
            piece = self._piece(offset, max_bytes, up_to)
        except SegmentAwayError:
            raise
        except HistoryMissingError as error:
            raise LogbergError(ErrorCode.OFFSET_OUT_OF_RANGE, str(error)) from None
        except DamagedLedgerError as error:
            raise LogbergError(ErrorCode.STORAGE_ERROR, str(error)) from None
        first, end = _span(piece) or (offset, offset)
        return _Found(first, end, len(piece), sum(map(len, piece)), up_to)

    def _piece(self, offset: int, max_bytes: int, up_to: int) -> list[bytes]:
        try:
            return self._history.read_from(offset, min(max_bytes, _PIECE_BYTES), up_to)
        except DamagedLedgerError as error:
            self._on_damaged(error)
            raise

    def _reply(
        self, found: "_Found", max_bytes: int, in_words: bool
    ) -> Generator[None, None, LongMessage]:
        """Find where the answer ends, one piece in each step. Then make it."""
        while found.batches and found.size < max_bytes and found.end < found.up_to:
            yield
            try:
                piece = self._piece(found.end, max_bytes - found.size, found.up_to)
            except (LedgerError, OSError):
                break  # Answer with the pieces before this one.
            size = sum(map(len, piece))
            span = _span(piece)
            if span is None or found.size + size > max_bytes:
                break
            found = found.with_piece(span[1], len(piece), size)
        return self._message(found, in_words)

    def _message(self, found: "_Found", in_words: bool) -> LongMessage:
        image = self._image()
        kind = ReadRecordsReply if in_words else ReadLogReply
        head = kind(
            offset=found.first,
            next_offset=found.end,
            log_start=self._history.log_start,
            high_watermark=readable_offset(image),
            epoch=image.epoch,
        )
        batches = self._batches(found)
        if not in_words:
            return LongMessage(head, "batches", batches, found.batches)
        words = (batch_in_words(parse(batch), self._opener) for batch in batches)
        return LongMessage(head, "batches", words, found.batches)

    def _batches(self, found: "_Found") -> Iterator[bytes]:
        """Read the answer's batches again, one piece at a time.

        Raises LedgerError if they are no longer there. The answer then ends early.
        """
        offset, left = found.first, found.batches
        while left:
            piece = self._piece(offset, _PIECE_BYTES, found.end)
            span = _span(piece)
            if span is None:
                raise HistoryMissingError(offset, self._history.log_start)
            yield from piece
            offset, left = span[1], left - len(piece)


class _Found(NamedTuple):
    """The batches of an answer."""

    first: int
    """Base offset of the first batch."""
    end: int
    """End offset of the last batch."""
    batches: int
    size: int
    """Bytes."""
    up_to: int
    """The end of what may be read."""

    def with_piece(self, end: int, count: int, size: int) -> "_Found":
        """Return the same with one more piece."""
        return _Found(self.first, end, self.batches + count, self.size + size, self.up_to)


def _span(piece: list[bytes]) -> tuple[int, int] | None:
    """Return where encoded batches begin and end; None if there are none."""
    if not piece:
        return None
    first, last = head_of(piece[0]), head_of(piece[-1])
    assert first is not None, "the ledger gives whole batches"
    assert last is not None
    return first.base_offset, last.end_offset


def batch_in_words(batch: Batch, opener: PersonOpener = NO_OPENER) -> LongMessage:
    """Return a batch's envelope and records as JSON, for people to read."""
    header = batch.header
    words = {
        "offset": header.base_offset,
        "endOffset": header.end_offset,
        "epoch": header.epoch,
        "timestampMs": header.timestamp_ms,
        **opener.cause(header.cause(uuid_text)),
        "hash": batch.hash.hex(),
        "records": [],
    }
    records = (opener.record_words(record) for record in iterate_records(batch.records))
    return LongMessage(words, "records", records, header.count)


def _in_words(text: str) -> bool:
    if text not in ("batches", "json"):
        raise LogbergError(
            ErrorCode.INVALID_REQUEST, f"format: {text[:50]!r}; give batches or json"
        )
    return text == "json"
