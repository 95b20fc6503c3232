"""Finds what a fetching broker needs: deltas, a snapshot to load, or where the histories diverge.

The order of the checks is:

1. If the broker's history diverges from ours, the reply says where, and nothing else counts.
2. A snapshot is named if the broker's log ends before ours begins (in offset or in epoch), or if it
   is smaller than the deltas that it replaces. An image from a snapshot replaces the broker's; the
   two are never merged. The archive's part of the log counts as ours; what is needed of it is read
   back, and the broker asks again meanwhile. If that fails, a snapshot is named.
3. Otherwise the reply has batches: at least one, if there is one, whatever `maxBytes` says.

What was found is kept while nothing changes, so thousands of brokers that fetch from the same
offset cost one search.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from controller.config import ControllerConfig
from controller.http.shared_replies import SharedReply
from controller.replica.batch_heads import head_of
from controller.replica.digests import StateMarks
from controller.storage.history import ReadableHistory
from controller.storage.snapshotting import Offer
from ledger.errors import DamagedLedgerError, HistoryMissingError, SegmentAwayError
from ledger.ledger import Ledger
from metadata.errors import ErrorCode, LogbergError
from metadata.messages import (
    Divergence,
    MetadataFetchReply,
    MetadataFetchRequest,
    SnapshotToLoad,
    StateAt,
)

_KEPT_MAX: Final = 16
_KEPT_BYTES_MAX: Final = 256 * 1024


class Content(NamedTuple):
    """The fetch part of a reply."""

    reply: MetadataFetchReply
    something: bool
    """There is news for the broker, so the request need not be held."""
    shared: dict[tuple[object, ...], SharedReply]
    """The whole replies that were made of it, by what else is in them."""


class FetchContent:
    """Finds the fetch part of replies."""

    def __init__(
        self,
        config: ControllerConfig,
        ledger: Callable[[], Ledger],
        history: ReadableHistory,
        marks: StateMarks,
        offer: Callable[[], Offer | None],
        on_damaged: Callable[[DamagedLedgerError], None],
    ) -> None:
        self._config = config
        self._ledger = ledger
        self._history = history
        self._not_recalled = ("", -1)
        """Why the archive could not be read, and the count of changes at that time."""
        self._marks = marks
        self._offer = offer
        self._on_damaged = on_damaged
        self._read_at = (-1, -1, -1)
        self._read: tuple[bytes, ...] = ()
        self._found: dict[tuple[int, int, int], Content] = {}
        self._found_in: tuple[object, ...] = ()
        """The state of the log to which `_found` belongs."""

    @property
    def log_end(self) -> int:
        """The end of the committed log here. No broker can have applied more of it."""
        return self._ledger().log_end

    def find(self, request: MetadataFetchRequest) -> Content:
        """Return the fetch part of a reply, for now. Raises LogbergError STORAGE_ERROR."""
        try:
            return self._find(request)
        except DamagedLedgerError as error:
            self._on_damaged(error)
            raise LogbergError(ErrorCode.STORAGE_ERROR, str(error)) from None
        except OSError as error:
            raise unreadable(error) from error

    def _find(self, request: MetadataFetchRequest) -> Content:
        ledger = self._ledger()
        present = (
            ledger,
            ledger.log_start,
            ledger.log_end,
            self._marks.end,
            self._offer(),
            self._history.changes,
        )
        if present != self._found_in:
            self._found.clear()
            self._found_in = present
        asked = (request.fetched_offset, request.fetched_epoch, request.max_bytes)
        content = self._found.get(asked)
        if content is None:
            content = self._search(ledger, request)
            size = sum(map(len, content.reply.batches))
            if len(self._found) < _KEPT_MAX and size <= _KEPT_BYTES_MAX:
                self._found[asked] = content
        return content

    def _search(self, ledger: Ledger, request: MetadataFetchRequest) -> Content:
        high_watermark = ledger.log_end
        offset, epoch = request.fetched_offset, request.fetched_epoch
        if offset > 0:
            diverging = self._diverging(ledger, offset, epoch)
            if diverging is not None:
                reply = MetadataFetchReply(
                    high_watermark=high_watermark,
                    diverging=diverging,
                    snapshot=_to_load(self._offer()),
                )
                return Content(reply, True, {})
        offer = self._offer()
        if self._history.holds_away(offset) and not self._smaller(offer, offset):
            return self._archived(offset, request.max_bytes, high_watermark)
        if _is_before(ledger, offset, epoch) or _saves(offer, ledger, offset):
            snapshot = _to_load(offer)
            reply = MetadataFetchReply(high_watermark=high_watermark, snapshot=snapshot)
            return Content(reply, snapshot is not None, {})
        try:
            batches = self._batches(ledger, offset, request.max_bytes, high_watermark)
        except HistoryMissingError:
            batches = ()
        return Content(
            MetadataFetchReply(
                high_watermark=high_watermark,
                batches=batches,
                state_hash=self._state_at(ledger, offset, batches),
            ),
            bool(batches),
            {},
        )

    def _smaller(self, offer: Offer | None, offset: int) -> bool:
        """Return whether a snapshot is smaller than the archive's part that it replaces."""
        return offer is not None and offer.size < self._history.bytes_away(offset)

    def _archived(self, offset: int, max_bytes: int, high_watermark: int) -> Content:
        """Return what the archive has from an offset on, or nothing as long as it is read back."""
        try:
            max_bytes = min(max_bytes, self._config.fetch_bytes_max)
            batches = tuple(self._history.read_from(offset, max_bytes, high_watermark))
        except SegmentAwayError:
            why, since = self._not_recalled
            if why and since == self._history.changes:
                offer = self._offer()
                if offer is None:
                    raise LogbergError(ErrorCode.STORAGE_ERROR, why) from None
                reply = MetadataFetchReply(high_watermark=high_watermark, snapshot=_to_load(offer))
                return Content(reply, True, {})
            self._history.recall(offset, self._recalled)
            return Content(MetadataFetchReply(high_watermark=high_watermark), False, {})
        return Content(
            MetadataFetchReply(high_watermark=high_watermark, batches=batches), bool(batches), {}
        )

    def _recalled(self, why: str) -> None:
        self._not_recalled = (why, self._history.changes)

    def _diverging(self, ledger: Ledger, offset: int, epoch: int) -> Divergence | None:
        """Return where a broker's history diverges from ours (KIP-595); None if it doesn't."""
        if offset < ledger.log_start:
            return None
        known = ledger.end_offset_for_epoch(epoch)
        if known is None:
            # All epochs in our log are newer. If our log begins later, only a snapshot helps.
            return Divergence(epoch=0, end_offset=0) if ledger.log_start == 0 else None
        ours, end = known
        if ours != epoch or end < offset:
            return Divergence(epoch=ours, end_offset=min(end, offset))
        return None

    def _batches(
        self, ledger: Ledger, offset: int, max_bytes: int, high_watermark: int
    ) -> tuple[bytes, ...]:
        """Return batches from an offset on. Brokers that ask for the same share the bytes."""
        if offset >= high_watermark:
            return ()
        max_bytes = min(max_bytes, self._config.fetch_bytes_max)
        if self._read_at != (offset, max_bytes, high_watermark):
            self._read = tuple(ledger.read_from(offset, max_bytes, high_watermark))
            self._read_at = (offset, max_bytes, high_watermark)
        return self._read

    def _state_at(self, ledger: Ledger, offset: int, batches: tuple[bytes, ...]) -> StateAt | None:
        head = head_of(batches[-1]) if batches else None
        end = offset if head is None else head.end_offset
        mark = self._marks.at_or_below(end)
        if mark is None:
            return None
        return StateAt(
            offset=mark.offset,
            chain_hash=mark.chain_hash,
            state_hash=mark.shared.to_bytes(32, "big"),
        )


def unreadable(error: OSError) -> LogbergError:
    """Return the error for a failed read of the disk. Other controllers have the same bytes."""
    return LogbergError(
        ErrorCode.STORAGE_ERROR,
        f"this controller can't read its disk: {error.strerror or error}; ask another",
    )


def _is_before(ledger: Ledger, offset: int, epoch: int) -> bool:
    """Return whether the broker's log ends before ours begins, in offset or in epoch.

    At or behind our first offset with an epoch that ended before it, the broker has records that
    were lost. Our log doesn't say where that epoch ended, so only a snapshot helps.
    """
    if offset < ledger.log_start:
        return True
    return ledger.log_start > 0 and ledger.end_offset_for_epoch(epoch) is None


def _saves(offer: Offer | None, ledger: Ledger, offset: int) -> bool:
    """Return whether the snapshot is smaller than the deltas that it replaces."""
    if offer is None or not ledger.log_start <= offset < offer.offset <= ledger.log_end:
        return False
    return offer.size < log_bytes_between(ledger, offset, offer.offset)


def log_bytes_between(ledger: Ledger, start: int, end: int) -> int:
    """Return the size in bytes of the batches between two batch ends in this ledger."""
    catalogue = ledger.catalogue
    total = 0
    for segment in catalogue.run:
        first, last = segment.base_offset, catalogue.end_of(segment)
        if last <= start or first >= end:
            continue
        index = catalogue.index_of(segment)
        low = segment.header_length if first >= start else catalogue.head_at(start)[1].position
        high = index.end_position if last <= end else catalogue.head_at(end)[1].position
        total += high - low
    return total


def _to_load(offer: Offer | None) -> SnapshotToLoad | None:
    return None if offer is None else SnapshotToLoad(id=offer.id, size=offer.size)
