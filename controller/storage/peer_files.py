"""Fetching a peer's files piece by piece, whoever wants them.

Rule: one request at a time; a piece that doesn't come is asked for again after a pause, and
whoever wanted it may have stopped meanwhile.
"""

from collections.abc import Callable, Sequence

from controller.config import ControllerConfig
from quorum.api import PeerFile, Quorum
from runtime.clock import Clock


class PeerFiles:
    """The shared files of the other controllers, for one job at a time."""

    def __init__(self, config: ControllerConfig, clock: Clock, quorum: Quorum) -> None:
        self._config = config
        self._clock = clock
        self._quorum = quorum
        self._job = 0

    def new_job(self) -> int:
        """Begin a job: what an earlier one asked for is not answered any more."""
        self._job += 1
        return self._job

    def stop(self) -> None:
        """Answer nothing any more."""
        self._job += 1

    def list(
        self,
        source: int,
        folder: str,
        on_names: Callable[[Sequence[tuple[str, int]]], None],
        on_silence: Callable[[], None],
    ) -> None:
        """Names and sizes of a peer's files."""
        job = self._job

        def reply(names: Sequence[tuple[str, int]] | None) -> None:
            if job != self._job:
                return
            if names is None:
                self.later(on_silence)
            else:
                on_names(names)

        self._quorum.list_files(source, folder, reply)

    def read(
        self,
        source: int,
        name: str,
        position: int,
        on_piece: Callable[[PeerFile], None],
        on_silence: Callable[[], None],
    ) -> None:
        """A piece of a peer's file; empty at its end."""
        job = self._job

        def reply(piece: PeerFile | None) -> None:
            if job != self._job:
                return
            if piece is None:
                self.later(on_silence)
            else:
                on_piece(piece)

        self._quorum.read_file(source, name, position, self._config.catch_up_chunk_bytes, reply)

    def later(self, again: Callable[[], None], pause_s: float | None = None) -> None:
        """Call back after a pause, if the job still goes on."""
        job = self._job

        def call() -> None:
            if job == self._job:
                again()

        pause_s = self._config.catch_up_retry_s if pause_s is None else pause_s
        self._clock.call_later(pause_s, call)

    def guarded(self, callback: Callable[[], None]) -> Callable[[], None]:
        """The callback, called only if the job still goes on."""
        job = self._job

        def call() -> None:
            if job == self._job:
                callback()

        return call
