"""Lists the ledger's segments, and serves their bytes by ranges: what a backup is made from.

Rule: only committed bytes are served, as they are on disk, and none are decoded here. The receiver
verifies them. Any node answers, whether or not it leads.
"""

from collections.abc import Callable

from controller.config import ControllerConfig
from controller.http.byte_ranges import range_of, ranged
from controller.http.queries import limit_of, whole_number
from controller.http.route import NUMBER_MAX
from ledger.ledger import Ledger
from metadata.errors import ErrorCode, LogbergError
from metadata.messages import SEGMENTS_LISTED_MAX, ListSegmentsReply, SegmentDescription
from runtime.http.requests import Reply, Request


class SegmentRanges:
    """Answers `GET /v1/segments` and `GET /v1/segments/{base}`."""

    def __init__(self, config: ControllerConfig, ledger: Callable[[], Ledger]) -> None:
        self._config = config
        self._ledger = ledger

    def listed(self, request: Request) -> ListSegmentsReply:
        """Return the segments here. Raises LogbergError INVALID_REQUEST, OSError."""
        ledger = self._ledger()
        first = whole_number(request.query, "fromBase", 0)
        limit = limit_of(request.query, SEGMENTS_LISTED_MAX) or SEGMENTS_LISTED_MAX
        bases = [base for base in ledger.segment_bases() if base >= first]
        mark = ledger.mark()
        return ListSegmentsReply(
            self._config.cluster_id,
            self._config.node_id,
            mark.log_end,
            mark.epoch,
            mark.timestamp_ms,
            mark.head.hex(),
            tuple(SegmentDescription(base, ledger.segment_size(base)) for base in bases[:limit]),
            more=len(bases) > limit,
        )

    def read(self, request: Request, text: str) -> Reply:
        """Return a range of a segment's bytes. Raises LogbergError, OSError."""
        ledger = self._ledger()
        base = whole_number({"base": text}, "base", NUMBER_MAX)
        position, length = range_of(request)
        if base not in ledger.segment_bases():
            raise LogbergError(
                ErrorCode.NOT_FOUND,
                f"no segment begins at offset {base} here; /v1/segments lists all",
            )
        size = ledger.segment_size(base)
        if position > size:
            raise LogbergError(
                ErrorCode.POSITION_OUT_OF_RANGE,
                f"byte {position} is after the end of the segment, which has {size} bytes",
            )
        return ranged(position, ledger.read_segment(base, position, length), size)
