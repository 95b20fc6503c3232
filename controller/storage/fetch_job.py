"""Fetches files of other controllers, by code that reads from top to bottom.

A job is a generator. Where it must wait (for a peer's answer, for the disk, for a time to pass) it
yields a `Wait`; `FetchJob` resumes it with the answer. Everything else runs meanwhile.

Rule: a `FetchJob` runs one job at a time. A stopped job is never resumed: its `finally` and `with`
blocks run, and the answer that it waited for is ignored.

Example, in a method of a class that holds a `FetchJob`:

    def _steps(self) -> Steps[None]:
        try:
            sizes = yield from self._job.list_files(source, LOG_FOLDER)
        except NoHelpError:
            yield from self._job.pause()
"""

from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Protocol, TypeVar

from controller.config import ControllerConfig
from quorum.api import PeerFile, Quorum
from runtime.clock import Clock
from runtime.loop.slices import run_in_slices

T = TypeVar("T")
Resume = Callable[[Any], None]
Wait = Callable[[Resume], None]
"""Begins something and calls back once, with the answer."""
Steps = Generator[Wait, Any, T]
"""A job, or a part of one that returns a T."""


class NoHelpError(Exception):
    """A peer did not answer, or its bytes are wrong: pause, then try again."""


class CannotGoOnError(Exception):
    """Ends the job and the node; the message says why and what to do."""


class Pull(Protocol):
    """One file that is fetched in pieces: a `SegmentPull` or a `CheckpointFetch`."""

    @property
    def complete(self) -> bool:
        """All is here, and verified."""

    @property
    def position(self) -> int:
        """The next byte of the peer's file to ask for."""

    def add(self, data: bytes) -> object:
        """Verify the bytes at `position`, and append them to the file here."""


class FetchJob:
    """Runs one job at a time, and offers what a job can wait for."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        quorum: Quorum,
        on_failed: Callable[[str], None] | None = None,
    ) -> None:
        """`on_failed` stops the node; it is called with the message of a CannotGoOnError."""
        self._config = config
        self._clock = clock
        self._quorum = quorum
        self._on_failed = on_failed
        self._run: _Run | None = None

    def start(self, steps: Steps[None]) -> None:
        """Run a job, up to its first wait. Stops the one that runs."""
        self.stop()
        self._run = _Run(steps, self._on_failed)
        self._run.resume(None)

    def stop(self) -> None:
        """Stop the job that runs, if one does."""
        run, self._run = self._run, None
        if run is not None:
            run.stop()

    # -- what a job can wait for --------------------------------------------------------------

    def list_files(self, source: int, folder: str) -> Steps[dict[str, int]]:
        """Return size by name of the files in a peer's folder. Raises NoHelpError."""
        names = yield partial(self._quorum.list_files, source, folder)
        if names is None:
            raise NoHelpError
        return dict(names)

    def read(self, source: int, name: str, position: int) -> Steps[bytes]:
        """Return a piece of a peer's file, empty at its end. Raises NoHelpError."""
        length = self._config.catch_up_chunk_bytes
        piece: PeerFile | None = yield partial(
            self._quorum.read_file, source, name, position, length
        )
        if piece is None:
            raise NoHelpError
        return piece.data

    def fill(self, pull: Pull, source: int, name: str) -> Steps[None]:
        """Read a peer's file into `pull` until it is complete.

        Raises NoHelpError, and what `pull.add` raises.
        """
        while not pull.complete:
            pull.add((yield from self.read(source, name, pull.position)))

    def pause(self, seconds: float | None = None) -> Steps[None]:
        """Let time pass; `catch_up_retry_s` if it is not said how much."""
        pause_s = self._config.catch_up_retry_s if seconds is None else seconds

        def begin(resume: Resume) -> None:
            self._clock.call_later(pause_s, partial(resume, None))

        yield begin

    def in_slices(self, work: Generator[None, None, None]) -> Steps[None]:
        """Do long work in slices. Raises what the work raises."""
        failed: list[Exception] = []
        cancel: list[Callable[[], None]] = []

        def caught() -> Generator[None, None, None]:
            try:
                yield from work
            except Exception as error:  # noqa: BLE001 - raised below, where the job waits
                failed.append(error)

        def begin(resume: Resume) -> None:
            cancel.append(run_in_slices(self._clock, caught(), partial(resume, None)))

        try:
            yield begin
        except GeneratorExit:
            for stop in cancel:
                stop()
            raise
        if failed:
            raise failed[0]

    def written(self, begin: Callable[[Callable[[OSError | None], None]], None]) -> Steps[None]:
        """Wait until the disk has done what `begin` asks of it. Raises OSError."""
        error: OSError | None = yield begin
        if error is not None:
            raise error


class _Run:
    """One job, from its start to its end."""

    def __init__(self, steps: Steps[None], on_failed: Callable[[str], None] | None) -> None:
        self._steps = steps
        self._on_failed = on_failed
        self._stepping = False
        self._stopped = False

    def resume(self, answer: object) -> None:
        """Go on with the answer, up to the next wait."""
        self._stepping = True
        try:
            wait = self._steps.send(answer)
        except StopIteration:
            return  # it has come to its end, or was stopped before the answer came
        except CannotGoOnError as error:
            if self._on_failed is None:
                raise
            self._on_failed(str(error))
            return
        finally:
            self._stepping = False
        self._begin(wait)

    def _begin(self, wait: Wait) -> None:
        """Begin to wait, unless the job has stopped itself."""
        if self._stopped:
            self._steps.close()
        else:
            wait(self.resume)

    def stop(self) -> None:
        """Resume no more. A job that stops itself is closed at its next wait."""
        self._stopped = True
        if not self._stepping:
            self._steps.close()
