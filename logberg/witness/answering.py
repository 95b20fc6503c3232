"""Answers the requests of a witness: submissions, what it cosigned last, health and metrics.

Rule: submissions are judged on the disk's own thread, one after another, so the loop never waits
for a sync, and no two of them meet. What is served of a log is what that thread made durable.

Anybody may submit. So what they submit writes few lines: refused submissions as `Refusals` says,
each new head once, and each contradiction once for its file of evidence. All are counted.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from structlog.typing import FilteringBoundLogger

from ledger.merkle.submissions import PATH, path_of
from logberg.witness.state import WitnessState
from logberg.witness.witness import TEXT, Judgement, Outcome, Witness
from runtime.disk.errors import NO_ROOM, sentence
from runtime.disk.interface import Disk
from runtime.http.requests import Reply, Request
from runtime.metrics import CONTENT_TYPE, Registry
from runtime.sockets.refusals import SUBMISSION, Refusals

_WAITING_MAX: Final = 64
"""Submissions that wait for the disk. Further ones are refused."""
_FAILED: Final = "not_written"


class WitnessAnswers:
    """Answers requests, exactly once each."""

    def __init__(
        self,
        witness: Witness,
        state: WitnessState,
        disk: Disk,
        on_failed: Callable[[str], None],
        refusals: Refusals,
        log: FilteringBoundLogger,
    ) -> None:
        """`on_failed` gets a sentence when the disk has failed and the process must end.

        `refusals` logs refused submissions; it may be shared with the listener.
        """
        self._witness = witness
        self._state = state
        self._disk = disk
        self._on_failed = on_failed
        self._refusals = refusals
        self._log = log
        self._cosigned: dict[str, int] = {}
        """The size of the newest head that was logged, by its log."""
        self._contradictions: set[str] = set()
        """The files of evidence that were logged. The state keeps few."""
        self._waiting = 0
        self._failed = ""
        registry = self.registry = Registry()
        self._counter = registry.counter(
            "logberg_witness_submissions_total",
            "Heads that were submitted to this witness, by what became of them.",
            ("outcome",),
        )
        registry.read_gauge(
            "logberg_witness_batches",
            "How many batches the newest head has that this witness cosigned, by its log.",
            self._sizes,
            ("origin",),
        )

    def handle(self, request: Request, reply: Callable[[Reply], None]) -> None:
        """Answer one request, now or later."""
        if request.path == PATH:
            if request.method == "POST":
                self._add(request, reply)
            else:
                reply(_plain(HTTPStatus.METHOD_NOT_ALLOWED, "submissions are sent by POST"))
        elif request.method != "GET":
            reply(_plain(HTTPStatus.METHOD_NOT_ALLOWED, "only submissions are sent by POST"))
        elif request.path == "/metrics":
            reply(Reply(200, self.registry.render(), {"content-type": CONTENT_TYPE}))
        elif request.path == "/health":
            status = HTTPStatus.SERVICE_UNAVAILABLE if self._failed else HTTPStatus.OK
            reply(_plain(status, self._failed or "ok"))
        elif request.path == "/":
            reply(_plain(HTTPStatus.OK, self._witness.public.text))
        else:
            self._serve_head(request.path, reply)

    def _add(self, request: Request, reply: Callable[[Reply], None]) -> None:
        if self._failed or self._waiting >= _WAITING_MAX:
            reply(_plain(HTTPStatus.SERVICE_UNAVAILABLE, self._failed or "ask again later"))
            return
        self._waiting += 1

        def done(judged: Judgement | None, error: OSError | None) -> None:
            self._waiting -= 1
            if judged is None:
                reply(self._not_written(error or OSError("no answer")))
                return
            self._counter.add(1, judged.outcome.value)
            self._say(judged)
            reply(Reply(judged.status, judged.body, {"content-type": judged.content_type}))

        self._disk.in_background(lambda: self._witness.add(request.body), done)

    def _say(self, judged: Judgement) -> None:
        about = {"origin": judged.origin, "batches": judged.size}
        match judged.outcome:
            case Outcome.COSIGNED:
                # All controllers submit each head, and anybody can submit the newest one again.
                if judged.size > self._cosigned.get(judged.origin, -1):
                    self._cosigned[judged.origin] = judged.size
                    self._log.info("head_cosigned", **about)
            case Outcome.CONTRADICTS:
                # Not among the refusals: a flood of these must not hide it.
                if judged.evidence not in self._contradictions:
                    self._contradictions.add(judged.evidence)
                    self._log.critical(
                        "submission_contradicts", why=judged.why, evidence=judged.evidence, **about
                    )
            case Outcome.CONFLICT:
                self._log.debug("submission_conflicts", **about)
            case _:
                self._refusals.refused(SUBMISSION, outcome=judged.outcome.value, why=judged.why)

    def _not_written(self, error: OSError) -> Reply:
        self._counter.add(1, _FAILED)
        why = sentence(error, "keeping a cosigned head")
        self._log.error("cosigned_head_not_written", why=why)
        if error.errno not in NO_ROOM:
            self._failed = why
            self._on_failed(why)
        return _plain(HTTPStatus.INTERNAL_SERVER_ERROR, "the head can't be made durable here")

    def _serve_head(self, path: str, reply: Callable[[Reply], None]) -> None:
        for origin in self._state.origins():
            newest = self._state.newest(origin)
            if path == path_of(origin) and newest is not None:
                headers = {"content-type": TEXT, "cache-control": "no-cache"}
                reply(Reply(200, newest.note.encode(), headers))
                return
        reply(_plain(HTTPStatus.NOT_FOUND, "nothing is here; nothing of that log was cosigned"))

    def _sizes(self) -> dict[tuple[str, ...], float]:
        found = {origin: self._state.newest(origin) for origin in self._state.origins()}
        return {(origin,): float(one.head.size) for origin, one in found.items() if one}


def _plain(status: int, text: str) -> Reply:
    return Reply(status, f"{text}\n".encode(), {"content-type": TEXT})
