"""Fetching a snapshot from a controller, piece by piece, across interruptions.

Rule: every piece that is answered counts as contact, on both sides (the controller notes it, our
lease is renewed), so a large snapshot fences nobody. What has arrived stays on disk; another
attempt for the same snapshot goes on where it stopped. The file is verified as it arrives, and is
put in place only when it is whole and right.
"""

from collections.abc import Callable

import structlog

from ledger.errors import LedgerError
from metadata.messages.fetch import SnapshotToLoad
from runtime.clock import Clock
from runtime.disk import Disk
from runtime.requests import PendingRequest, Reply, Request, Requester, Unreachable
from runtime.slices import run_in_slices
from snapshots.checkpoint import CheckpointId
from snapshots.errors import CheckpointError
from snapshots.fetching import CheckpointFetch

PIECE_BYTES = 1024 * 1024
_PIECE_LIMIT_S = 5.0

OnFetched = Callable[[CheckpointId | None, str], None]


class SnapshotDownload:
    """At most one download at a time."""

    def __init__(
        self,
        cluster_id: str,
        clock: Clock,
        disk: Disk,
        requester: Requester,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._cluster_id = cluster_id
        self._clock = clock
        self._disk = disk
        self._requester = requester
        self._log = log
        self._current: _Download | None = None

    @property
    def active(self) -> bool:
        """Whether a download is under way."""
        return self._current is not None

    def begin(
        self,
        url: str,
        snapshot: SnapshotToLoad,
        broker: tuple[int, int],
        on_contact: Callable[[float], None],
        on_done: OnFetched,
    ) -> None:
        """Fetch a snapshot from the controller at `url`.

        `broker` is id and epoch. `on_contact` gets the sending time of each answered piece.
        `on_done` gets the checkpoint, durably in its place, or None and why not.
        """
        try:
            checkpoint = CheckpointId.parse(snapshot.id)
        except CheckpointError as error:
            on_done(None, str(error))
            return

        def finished(problem: str) -> None:
            self._current = None
            on_done(None if problem else checkpoint, problem)

        self._log.info("snapshot_fetch_began", snapshot=snapshot.id, bytes=snapshot.size)
        fetch = CheckpointFetch(self._disk, self._cluster_id, checkpoint, snapshot.size)
        query = {"brokerId": str(broker[0]), "brokerEpoch": str(broker[1])}
        self._current = _Download(
            fetch,
            lambda headers, on_reply: self._requester.request(
                url,
                Request("GET", f"/v1/snapshots/{snapshot.id}", query=query, headers=headers),
                on_reply,
                _PIECE_LIMIT_S,
            ),
            snapshot.size,
            self._clock,
            on_contact,
            finished,
        )
        self._current.start()

    def abandon(self) -> None:
        """Stop; what has arrived stays."""
        if self._current is not None:
            self._current.abandon()
            self._current = None


class _Download:
    """One snapshot on its way."""

    def __init__(
        self,
        fetch: CheckpointFetch,
        ask: Callable[[dict[str, str], Callable[[Reply | Unreachable], None]], PendingRequest],
        size: int,
        clock: Clock,
        on_contact: Callable[[float], None],
        finished: Callable[[str], None],
    ) -> None:
        self._fetch = fetch
        self._ask = ask
        self._size = size
        self._clock = clock
        self._on_contact = on_contact
        self._finished = finished
        self._in_flight: PendingRequest | None = None
        self._stop_preparing: Callable[[], None] | None = None
        self._over = False

    def start(self) -> None:
        """Take up what an earlier attempt left, then ask for the rest."""
        self._stop_preparing = run_in_slices(self._clock, self._fetch.prepare(), self._next)

    def abandon(self) -> None:
        """Stop without a word."""
        self._over = True
        if self._stop_preparing is not None:
            self._stop_preparing()
        if self._in_flight is not None:
            self._in_flight.abandon()
        self._fetch.close()

    def _next(self) -> None:
        if self._over:
            return
        if self._fetch.complete:
            self._fetch.place(self._placed)
            return
        position = self._fetch.position
        end = max(position, min(self._size, position + PIECE_BYTES) - 1)
        sent_at = self._clock.monotonic()
        self._in_flight = self._ask(
            {"range": f"bytes={position}-{end}"}, lambda answer: self._arrived(sent_at, answer)
        )

    def _arrived(self, sent_at: float, answer: Reply | Unreachable) -> None:
        self._in_flight = None
        if isinstance(answer, Unreachable):
            self._give_up(answer.reason)
        elif answer.status not in {200, 206}:
            self._give_up(f"the controller answered {answer.status}")
        else:
            self._on_contact(sent_at)
            self._keep(answer.body)

    def _keep(self, piece: bytes) -> None:
        try:
            self._fetch.add(piece)
        except (CheckpointError, LedgerError) as error:
            self._fetch.discard()
            self._give_up(str(error))
        except OSError as error:
            self._give_up(f"it can't be written here: {error.strerror}")
        else:
            self._next()

    def _placed(self, error: OSError | None) -> None:
        if not self._over:
            self._over = True
            self._finished("" if error is None else f"it can't be kept here: {error.strerror}")

    def _give_up(self, why: str) -> None:
        self.abandon()
        self._finished(why)
