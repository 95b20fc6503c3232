"""Fetching a snapshot from a controller, piece by piece, across interruptions.

Rule: every piece that is answered counts as contact, on both sides (the controller notes it, our
lease is renewed), so a large snapshot fences nobody. What has arrived stays on disk under the
snapshot's id; another attempt for the same id goes on where it stopped. Nothing is believed here:
the file is verified whole by whoever loads it.
"""

from collections.abc import Callable

import structlog

from metadata.messages.fetch import SnapshotToLoad
from runtime.clock import Clock
from runtime.disk import AppendFile, Disk
from runtime.requests import PendingRequest, Reply, Request, Requester, Unreachable

PIECE_BYTES = 1024 * 1024
_PIECE_LIMIT_S = 5.0
FOLDER = "incoming"

OnFetched = Callable[[str | None, str], None]


class SnapshotDownload:
    """At most one download at a time."""

    def __init__(
        self,
        clock: Clock,
        disk: Disk,
        requester: Requester,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._clock = clock
        self._disk = disk
        self._requester = requester
        self._log = log
        self._in_flight: PendingRequest | None = None
        self._file: AppendFile | None = None

    @property
    def active(self) -> bool:
        """Whether a download is under way."""
        return self._file is not None

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
        `on_done` gets the file's name, synced, or None and why not.
        """
        self._disk.make_folder(FOLDER)
        name = f"{FOLDER}/{snapshot.id}.checkpoint"
        for other in self._disk.list(FOLDER):
            if f"{FOLDER}/{other}" != name:
                self._disk.unlink(f"{FOLDER}/{other}")
        self._file = self._disk.open(name)
        if self._file.size() > snapshot.size:
            self._file.truncate(0)
        self._log.info("snapshot_fetch_began", id=snapshot.id, size=snapshot.size)
        self._next(url, snapshot, broker, on_contact, on_done)

    def abandon(self) -> None:
        """Stop; what has arrived stays."""
        if self._in_flight is not None:
            self._in_flight.abandon()
            self._in_flight = None
        if self._file is not None:
            self._file.close()
            self._file = None

    def _next(
        self,
        url: str,
        snapshot: SnapshotToLoad,
        broker: tuple[int, int],
        on_contact: Callable[[float], None],
        on_done: OnFetched,
    ) -> None:
        file = self._file
        assert file is not None
        position = file.size()
        if position >= snapshot.size:
            self._finish(file, on_done)
            return
        end = min(snapshot.size, position + PIECE_BYTES) - 1
        sent_at = self._clock.monotonic()
        request = Request(
            "GET",
            f"/v1/snapshots/{snapshot.id}",
            query={"brokerId": str(broker[0]), "brokerEpoch": str(broker[1])},
            headers={"range": f"bytes={position}-{end}"},
        )

        def arrived(answer: Reply | Unreachable) -> None:
            self._in_flight = None
            problem = self._keep(file, answer)
            if problem is not None:
                self.abandon()
                on_done(None, f"snapshot {snapshot.id}: {problem}")
                return
            on_contact(sent_at)
            self._next(url, snapshot, broker, on_contact, on_done)

        self._in_flight = self._requester.request(url, request, arrived, _PIECE_LIMIT_S)

    def _keep(self, file: AppendFile, answer: Reply | Unreachable) -> str | None:
        if isinstance(answer, Unreachable):
            return answer.reason
        if answer.status not in {200, 206}:
            return f"the controller answered {answer.status}"
        if not answer.body:
            return "the controller answered an empty piece"
        try:
            file.append(answer.body)
        except OSError as error:
            return f"can't be written here: {error.strerror}"
        return None

    def _finish(self, file: AppendFile, on_done: OnFetched) -> None:
        def synced(error: OSError | None) -> None:
            if self._file is not file:
                return
            self.abandon()
            if error is None:
                on_done(file.name, "")
            else:
                on_done(None, f"the snapshot can't be synced: {error.strerror}")

        self._disk.sync(file, synced)
