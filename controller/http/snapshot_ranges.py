"""Lists the snapshots, and serves a snapshot's bytes by ranges, so that a transfer can be resumed.

A broker's request for a piece counts as a contact, because loading an image may take longer than a
session. It counts only if it comes from the registered process. Bytes are sent as they are in the
file. The receiver verifies the whole.
"""

from collections.abc import Callable, Mapping

from controller.http.byte_ranges import range_of, ranged
from controller.http.queries import limit_of, whole_number
from controller.http.route import NUMBER_MAX
from controller.leader.identity import BrokerClaim
from metadata.errors import ErrorCode, LogbergError
from metadata.messages import SNAPSHOTS_LISTED_MAX, ListSnapshotsReply, SnapshotDescription
from metadata.uuids import parse_uuid_of
from runtime.http.requests import Caller, Reply, Request
from snapshots.checkpoint import CheckpointId
from snapshots.errors import CheckpointError, CheckpointNotFoundError, PositionOutOfRangeError
from snapshots.store import CheckpointStore


class SnapshotRanges:
    """Answers `GET /v1/snapshots` and `GET /v1/snapshots/{id}`."""

    def __init__(
        self,
        store: Callable[[], CheckpointStore | None],
        note_contact: Callable[[Caller, BrokerClaim], None],
    ) -> None:
        """`note_contact` checks a claim and notes the contact. On a standby it does nothing."""
        self._store = store
        self._note_contact = note_contact

    def listed(self, request: Request) -> ListSnapshotsReply:
        """Return the snapshots here, the newest first. Raises LogbergError INVALID_REQUEST."""
        at_most = whole_number(request.query, "upTo", NUMBER_MAX)
        limit = limit_of(request.query, SNAPSHOTS_LISTED_MAX) or SNAPSHOTS_LISTED_MAX
        store = self._store()
        if store is None:
            return ListSnapshotsReply(())
        ids = [one for one in store.list() if one.offset <= at_most]
        found = (_described(store, one) for one in reversed(ids[-limit:]))
        return ListSnapshotsReply(tuple(filter(None, found)), more=len(ids) > limit)

    def read(self, request: Request, text: str) -> Reply:
        """Return a piece of at most 1 MiB: status 206 with `content-range`.

        Without a range, the piece begins at position 0. Raises LogbergError SNAPSHOT_NOT_FOUND,
        POSITION_OUT_OF_RANGE, INCONSISTENT_CLUSTER_ID, and CLUSTER_AUTHORIZATION_FAILED for a
        caller that may not speak for the broker.
        """
        if "brokerId" in request.query:
            self._note_contact(request.caller, _claim_of(request.query))
        store = self._store()
        try:
            checkpoint = CheckpointId.parse(text)
            if store is None:
                raise CheckpointNotFoundError("this controller is starting")
            position, length = range_of(request)
            size, data = store.read_range(checkpoint, position, length)
        except PositionOutOfRangeError as error:
            raise LogbergError(ErrorCode.POSITION_OUT_OF_RANGE, str(error)) from None
        except CheckpointError as error:
            raise LogbergError(ErrorCode.SNAPSHOT_NOT_FOUND, str(error)) from None
        return ranged(position, data, size)


def _described(store: CheckpointStore, checkpoint: CheckpointId) -> SnapshotDescription | None:
    """Describe a snapshot; None if it was removed meanwhile."""
    try:
        size = store.size(checkpoint)
    except CheckpointNotFoundError:
        return None
    return SnapshotDescription(str(checkpoint), checkpoint.offset, checkpoint.epoch, size)


def _claim_of(query: Mapping[str, str]) -> BrokerClaim:
    """Return which process the request names. Raises LogbergError INVALID_REQUEST."""
    incarnation = query.get("incarnationId")
    return BrokerClaim(
        whole_number(query, "brokerId", 0),
        whole_number(query, "brokerEpoch", 0),
        query.get("clusterId"),
        None if incarnation is None else parse_uuid_of("incarnationId", incarnation),
    )
