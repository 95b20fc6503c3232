"""A snapshot's bytes over HTTP, by ranges, so that a broken transfer resumes.

Rule: a piece that a broker asks for is a sign of life: loading an image may take longer than a
session. It counts only for the registered process that it comes from. Bytes go out as they stand
in the file; whoever loads them verifies the whole.
"""

import re
from collections.abc import Callable, Mapping

from controller.http.queries import whole_number
from controller.leader.identity import BrokerClaim
from metadata.errors import ErrorCode, LogbergError
from metadata.uuids import parse_uuid_of
from runtime.requests import Caller, Reply, Request
from snapshots.checkpoint import CheckpointId
from snapshots.errors import CheckpointError, CheckpointNotFoundError, PositionOutOfRangeError
from snapshots.store import CheckpointStore

PIECE_BYTES = 1024 * 1024
_RANGE = re.compile(r"bytes=([0-9]{1,18})-([0-9]{0,18})")


class SnapshotRanges:
    """Answers `GET /v1/snapshots/{id}`."""

    def __init__(
        self,
        store: Callable[[], CheckpointStore | None],
        note_contact: Callable[[Caller, BrokerClaim], None],
    ) -> None:
        """`note_contact` checks a claim and notes it; a standby serves bytes and notes nothing."""
        self._store = store
        self._note_contact = note_contact

    def read(self, request: Request, text: str) -> Reply:
        """A piece: status 206 with `content-range`; without a range, from the beginning.

        At most 1 MiB each. Raises LogbergError SNAPSHOT_NOT_FOUND, POSITION_OUT_OF_RANGE,
        CLUSTER_AUTHORIZATION_FAILED for who speaks for another broker, INCONSISTENT_CLUSTER_ID.
        """
        if "brokerId" in request.query:
            self._note_contact(request.caller, _claim_of(request.query))
        store = self._store()
        try:
            checkpoint = CheckpointId.parse(text)
            if store is None:
                raise CheckpointNotFoundError("this node is starting")
            position, length = _range(request.headers.get("range", ""))
            size, data = store.read_range(checkpoint, position, length)
        except PositionOutOfRangeError as error:
            raise LogbergError(ErrorCode.POSITION_OUT_OF_RANGE, str(error)) from None
        except CheckpointError as error:
            raise LogbergError(ErrorCode.SNAPSHOT_NOT_FOUND, str(error)) from None
        headers = {
            "content-type": "application/octet-stream",
            "content-range": f"bytes {position}-{position + len(data) - 1}/{size}",
            "accept-ranges": "bytes",
        }
        if not data:
            headers["content-range"] = f"bytes */{size}"
        return Reply(206, data, headers)


def _claim_of(query: Mapping[str, str]) -> BrokerClaim:
    """Which process asks. Raises LogbergError INVALID_REQUEST."""
    incarnation = query.get("incarnationId")
    return BrokerClaim(
        whole_number(query, "brokerId", 0),
        whole_number(query, "brokerEpoch", 0),
        query.get("clusterId"),
        None if incarnation is None else parse_uuid_of("incarnationId", incarnation),
    )


def _range(text: str) -> tuple[int, int]:
    """Position and length. Raises LogbergError."""
    if not text:
        return 0, PIECE_BYTES
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST, f"header range: {text[:80]!r}; say bytes=<from>-<to>"
        )
    start = int(match[1])
    end = int(match[2]) if match[2] else start + PIECE_BYTES - 1
    if end < start:
        raise LogbergError(ErrorCode.INVALID_REQUEST, "header range: it ends before it begins")
    return start, min(end - start + 1, PIECE_BYTES)
