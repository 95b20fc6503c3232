"""Lists the ledger's segments, and serves their bytes by ranges: what a backup is made from.

Rule: only committed bytes are served, as they are on disk, and none are decoded here. The receiver
verifies them. Any node answers, whether or not it leads.
"""

from collections.abc import Callable

from controller.config import ControllerConfig
from controller.http.byte_ranges import range_of, ranged
from controller.http.fetch_content import unreadable
from controller.http.queries import limit_of, whole_number
from controller.http.route import NUMBER_MAX
from controller.storage.history import ReadableHistory
from ledger.errors import SegmentAwayError
from ledger.ledger import Ledger
from metadata.errors import ErrorCode, LogbergError
from metadata.messages import SEGMENTS_LISTED_MAX, ListSegmentsReply, SegmentDescription
from runtime.http.requests import Reply, Request


class SegmentRanges:
    """Answers `GET /v1/segments` and `GET /v1/segments/{base}`."""

    def __init__(
        self, config: ControllerConfig, ledger: Callable[[], Ledger], history: ReadableHistory
    ) -> None:
        self._config = config
        self._ledger = ledger
        self._history = history

    def listed(self, request: Request) -> ListSegmentsReply:
        """Return the segments here. Raises LogbergError INVALID_REQUEST, OSError."""
        ledger = self._ledger()
        first = whole_number(request.query, "fromBase", 0)
        limit = limit_of(request.query, SEGMENTS_LISTED_MAX) or SEGMENTS_LISTED_MAX
        found = [(base, size) for base, size in self._history.segments() if base >= first]
        mark = ledger.mark()
        return ListSegmentsReply(
            self._config.cluster_id,
            self._config.node_id,
            mark.log_end,
            mark.epoch,
            mark.timestamp_ms,
            mark.head.hex(),
            tuple(SegmentDescription(base, size) for base, size in found[:limit]),
            more=len(found) > limit,
        )

    def read(
        self, request: Request, text: str, on_reply: Callable[[Reply | LogbergError], None]
    ) -> None:
        """Answer with a range of a segment's bytes, now or once the archive's copy is here.

        Raises LogbergError, OSError.
        """
        base = whole_number({"base": text}, "base", NUMBER_MAX)
        position, length = range_of(request)
        size = dict(self._history.segments()).get(base)
        if size is None:
            raise LogbergError(
                ErrorCode.NOT_FOUND,
                f"no segment begins at offset {base} here; /v1/segments lists all",
            )
        if position > size:
            raise LogbergError(
                ErrorCode.POSITION_OUT_OF_RANGE,
                f"byte {position} is after the end of the segment, which has {size} bytes",
            )

        def recalled(why: str) -> None:
            if why:
                on_reply(LogbergError(ErrorCode.STORAGE_ERROR, why))
                return
            try:
                self.read(request, text, on_reply)
            except LogbergError as error:
                on_reply(error)
            except OSError as error:
                on_reply(unreadable(error))

        try:
            data = self._history.read_segment(base, position, length)
        except SegmentAwayError:
            self._history.recall(base, recalled)
        else:
            on_reply(ranged(position, data, size))
