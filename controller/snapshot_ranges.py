"""A snapshot's bytes over HTTP, by ranges, so that a broken transfer resumes.

Rule: a piece that a broker asks for is a sign of life: loading an image may take longer than a
session. Bytes go out as they stand in the file; whoever loads them verifies the whole.
"""

import re
from collections.abc import Callable

from controller.heartbeats import Heartbeats
from controller.metadata_fetch import check_speaks_for
from controller.queries import whole_number
from metadata.errors import ErrorCode, QuorateError
from runtime.requests import Reply, Request
from snapshots.checkpoint import CheckpointId
from snapshots.errors import CheckpointError, CheckpointNotFoundError, PositionOutOfRangeError
from snapshots.store import CheckpointStore

PIECE_BYTES = 1024 * 1024
_RANGE = re.compile(r"bytes=([0-9]{1,18})-([0-9]{0,18})")


class SnapshotRanges:
    """Answers `GET /v1/snapshots/{id}`."""

    def __init__(
        self, store: Callable[[], CheckpointStore | None], heard: Callable[[], Heartbeats | None]
    ) -> None:
        """`heard` is None while we don't lead: a standby serves bytes and notes no contact."""
        self._store = store
        self._heard = heard

    def read(self, request: Request, text: str) -> Reply:
        """A piece: status 206 with `content-range`; without a range, from the beginning.

        At most 1 MiB each. Raises QuorateError SNAPSHOT_NOT_FOUND, POSITION_OUT_OF_RANGE, and
        CLUSTER_AUTHORIZATION_FAILED for who speaks for another broker.
        """
        self._note_contact(request)
        store = self._store()
        try:
            checkpoint = CheckpointId.parse(text)
            if store is None:
                raise CheckpointNotFoundError("this node is starting")
            position, length = _range(request.headers.get("range", ""))
            size, data = store.read_range(checkpoint, position, length)
        except PositionOutOfRangeError as error:
            raise QuorateError(ErrorCode.POSITION_OUT_OF_RANGE, str(error)) from None
        except CheckpointError as error:
            raise QuorateError(ErrorCode.SNAPSHOT_NOT_FOUND, str(error)) from None
        headers = {
            "content-type": "application/octet-stream",
            "content-range": f"bytes {position}-{position + len(data) - 1}/{size}",
            "accept-ranges": "bytes",
        }
        if not data:
            headers["content-range"] = f"bytes */{size}"
        return Reply(206, data, headers)

    def _note_contact(self, request: Request) -> None:
        heard = self._heard()
        if heard is None or "brokerId" not in request.query:
            return
        broker_id = whole_number(request.query, "brokerId", 0)
        check_speaks_for(request.caller, broker_id)
        heard.touch(broker_id, whole_number(request.query, "brokerEpoch", 0))


def _range(text: str) -> tuple[int, int]:
    """Position and length. Raises QuorateError."""
    if not text:
        return 0, PIECE_BYTES
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise QuorateError(
            ErrorCode.INVALID_REQUEST, f"header range: {text[:80]!r}; say bytes=<from>-<to>"
        )
    start = int(match[1])
    end = int(match[2]) if match[2] else start + PIECE_BYTES - 1
    if end < start:
        raise QuorateError(ErrorCode.INVALID_REQUEST, "header range: it ends before it begins")
    return start, min(end - start + 1, PIECE_BYTES)
