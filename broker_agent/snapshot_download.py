"""Fetches a snapshot from a controller in pieces, and resumes after an interruption.

Rule: the pieces that have arrived stay on disk, and another attempt for the same snapshot continues
where the first stopped. The agent verifies the file as it arrives, and renames it into place only
when it is complete and correct. It removes pieces of other snapshots, since it never needs them.

A piece does not renew the lease, although a leading controller counts it as contact. Any controller
sends pieces. If pieces renewed the lease, a broker could serve because of a deposed leader while
the new leader has fenced it. So the agent continues to send fetches meanwhile.
"""

from collections.abc import Callable, Generator
from contextlib import suppress

import structlog

from ledger.errors import LedgerError
from metadata.messages.fetch import SnapshotToLoad
from runtime.clock import Clock
from runtime.disk.interface import Disk
from runtime.http.requests import PendingRequest, Reply, Request, Requester, Unreachable
from runtime.loop.slices import run_in_slices
from snapshots.checkpoint import CheckpointId
from snapshots.errors import CheckpointError
from snapshots.fetching import INCOMING_FOLDER, CheckpointFetch

SNAPSHOT_FETCH_BEGAN = "snapshot_fetch_began"
PIECE_BYTES = 1024 * 1024
_PIECE_LIMIT_S = 5.0
_OF_NO_USE = frozenset({404, 416})
"""The snapshot is gone, or shorter than the controller said: remove the pieces that are here."""

OnFetched = Callable[[CheckpointId | None, str], None]
Ask = Callable[[dict[str, str], Callable[[Reply | Unreachable], None]], PendingRequest]


class SnapshotDownload:
    """At most one download at a time."""

    def __init__(
        self,
        cluster_id: str,
        incarnation_id: str,
        clock: Clock,
        disk: Disk,
        requester: Requester,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        """`incarnation_id` of this process as text; the controller counts a piece as contact."""
        self._cluster_id = cluster_id
        self._incarnation_id = incarnation_id
        self._clock = clock
        self._disk = disk
        self._requester = requester
        self._log = log
        self._current: _Download | None = None

    @property
    def active(self) -> bool:
        """Whether a download is in progress."""
        return self._current is not None

    def begin(
        self, url: str, snapshot: SnapshotToLoad, broker: tuple[int, int], on_done: OnFetched
    ) -> None:
        """Fetch a snapshot from the controller at `url`; `broker` is (broker id, broker epoch).

        `on_done` gets the checkpoint and "" when its file is durable, or None and the problem. It
        is never called before this method returns.
        """
        assert self._current is None, "one download at a time"
        try:
            checkpoint = CheckpointId.parse(snapshot.id)
        except CheckpointError as error:
            problem = str(error)
            self._clock.call_soon(lambda: on_done(None, problem))
            return

        def finished(problem: str) -> None:
            self._current = None
            on_done(None if problem else checkpoint, problem)

        self._log.info(SNAPSHOT_FETCH_BEGAN, snapshot=snapshot.id, bytes=snapshot.size)
        query = {
            "brokerId": str(broker[0]),
            "brokerEpoch": str(broker[1]),
            "clusterId": self._cluster_id,
            "incarnationId": self._incarnation_id,
        }
        self._current = _Download(
            self._disk,
            CheckpointFetch(self._disk, self._cluster_id, checkpoint, snapshot.size),
            checkpoint,
            lambda headers, on_reply: self._requester.request(
                url,
                Request("GET", f"/v1/snapshots/{snapshot.id}", query=query, headers=headers),
                on_reply,
                _PIECE_LIMIT_S,
            ),
            snapshot.size,
            finished,
        )
        self._current.start(self._clock)

    def abandon(self) -> None:
        """Stop; the pieces that have arrived stay on disk."""
        if self._current is not None:
            self._current.abandon()
            self._current = None


class _Download:
    """One download."""

    def __init__(
        self,
        disk: Disk,
        fetch: CheckpointFetch,
        checkpoint: CheckpointId,
        ask: Ask,
        size: int,
        finished: Callable[[str], None],
    ) -> None:
        self._disk = disk
        self._fetch = fetch
        self._part = f"{checkpoint.name}.part"
        self._ask = ask
        self._size = size
        self._finished = finished
        self._in_flight: PendingRequest | None = None
        self._stop_preparing: Callable[[], None] | None = None
        self._problem = ""
        self._over = False

    def start(self, clock: Clock) -> None:
        """Read the pieces that an earlier attempt left, then ask for the rest."""
        self._stop_preparing = run_in_slices(clock, self._prepare(), self._prepared)

    def abandon(self) -> None:
        """Stop, and call nobody back."""
        self._over = True
        if self._stop_preparing is not None:
            self._stop_preparing()
        if self._in_flight is not None:
            self._in_flight.abandon()
        self._fetch.close()

    def _prepare(self) -> Generator[None, None, None]:
        try:
            for name in self._disk.list(INCOMING_FOLDER):
                if name != self._part:
                    self._disk.unlink(f"{INCOMING_FOLDER}/{name}")
            yield from self._fetch.prepare()
        except OSError as error:
            self._problem = f"the agent's folder can't be read or written: {error.strerror}"

    def _prepared(self) -> None:
        if self._problem:
            self._give_up(self._problem)
        else:
            self._next()

    def _next(self) -> None:
        if self._over:
            return
        if self._fetch.complete:
            self._fetch.place(self._placed)
            return
        position = self._fetch.position
        end = max(position, min(self._size, position + PIECE_BYTES) - 1)
        self._in_flight = self._ask({"range": f"bytes={position}-{end}"}, self._arrived)

    def _arrived(self, answer: Reply | Unreachable) -> None:
        self._in_flight = None
        if self._over:
            return
        if isinstance(answer, Unreachable):
            self._give_up(answer.reason)
        elif answer.status in {200, 206}:
            self._keep(answer.body)
        else:
            if answer.status in _OF_NO_USE:
                self._discard()
            self._give_up(f"the controller answered {answer.status}")

    def _keep(self, piece: bytes) -> None:
        try:
            self._fetch.add(piece)
        except (CheckpointError, LedgerError) as error:
            self._discard()
            self._give_up(str(error))
        except OSError as error:
            self._give_up(f"a piece of the snapshot can't be written: {error.strerror}")
        else:
            self._next()

    def _discard(self) -> None:
        with suppress(OSError):
            self._fetch.discard()

    def _placed(self, error: OSError | None) -> None:
        if not self._over:
            self._over = True
            problem = "" if error is None else f"the file can't be renamed: {error.strerror}"
            self._finished(problem)

    def _give_up(self, why: str) -> None:
        self.abandon()
        self._finished(why)
