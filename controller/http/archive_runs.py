"""Lets this controller move closed segments to the archive now, and says what has come of it.

Rule: any controller answers, and for its own segments only. A run may take long, so an answer says
whether it goes on; whoever names the run in the next request waits for the same one. The cluster's
log gets no record of it, because nothing changes that the controllers have agreed on. The node's
own log says who asked and why (`archive_asked`).
"""

from collections.abc import Callable
from typing import Final

from structlog.typing import FilteringBoundLogger

from controller.config import ControllerConfig
from controller.http.queries import whole_number
from controller.leader.changes import provenance_of
from controller.storage.archive_run import ArchiveRun
from controller.storage.archiving import Archiving
from metadata.errors import ErrorCode, LogbergError
from metadata.messages import RunArchiveReply
from runtime.clock import Clock
from runtime.http.requests import Request

WAIT_S: Final = 4.0
"""So long a request is held while a run goes on."""

OnAnswer = Callable[[RunArchiveReply | LogbergError], None]


class ArchiveRuns:
    """Answers `POST /v1/archive/run`."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        archiving: Archiving | None,
        log: FilteringBoundLogger,
    ) -> None:
        self._config = config
        self._clock = clock
        self._archiving = archiving
        self._log = log

    def handle(self, request: Request, on_answer: OnAnswer) -> None:
        """Begin a run or join one, and answer when it has ended, or after a time.

        Raises LogbergError.
        """
        archiving = self._archiving
        if archiving is None:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                f"controller {self._config.node_id} has no archive: name one in [archive] of its "
                "file, as `to`, and restart it",
            )
        named = whole_number(request.query, "run", 0)
        run = self._named(archiving, named) if named else self._begun(archiving, request)
        answered: list[bool] = []

        def answer() -> None:
            if not answered:
                answered.append(True)
                timer.cancel()
                on_answer(self._reply(archiving, run))

        timer = self._clock.call_later(WAIT_S, answer)
        run.when_ended(answer)

    def _begun(self, archiving: Archiving, request: Request) -> ArchiveRun:
        asks = provenance_of(request, "run_archive", self._config.delegations)
        run = archiving.run_now()
        self._log.info(
            "archive_asked",
            principal=asks.principal,
            on_behalf_of=asks.on_behalf_of,
            address=asks.client_address,
            reason=asks.reason,
            run=run.number,
        )
        return run

    def _named(self, archiving: Archiving, number: int) -> ArchiveRun:
        run = archiving.newest_run
        if run is None or run.number != number:
            raise LogbergError(
                ErrorCode.NOT_FOUND,
                f"controller {self._config.node_id} knows nothing of run {number}: it was started "
                "anew, or others have asked since. Ask without `run`",
            )
        return run

    def _reply(self, archiving: Archiving, run: ArchiveRun) -> RunArchiveReply | LogbergError:
        if run.failed:
            return LogbergError(ErrorCode.STORAGE_ERROR, run.failed)
        return RunArchiveReply(
            node_id=self._config.node_id,
            place=archiving.location,
            run=run.number,
            ended=run.ended,
            segments=run.segments,
            bytes=run.bytes,
            note=run.note,
        )
