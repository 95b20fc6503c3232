"""The console: keeps an index up with its log, and answers requests from it.

Rule: `keep_up` runs in one thread, `answer` in any number of others. They share only what is
replaced whole: the index, the progress, the proof. A request that can't be answered gets one
sentence, and the console goes on.
"""

import sqlite3
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import msgspec

from audit.console.asked import AskedError, ConsoleQuery
from audit.console.exporting import EXPORT_MAX, exported
from audit.console.found import LogFindings, judged
from audit.console.log_source import LogSource
from audit.console.page_files import page_file
from audit.console.people import ConsolePeople
from audit.console.proof import ProofStatus, grown, verified
from audit.console.views import VIEWS, Explain, Viewed
from audit.index.log_index import LogIndex, TooSlowError
from audit.index.opening import IndexKeeper
from audit.places.replicas import NoLogError
from audit.questions.search import SearchError
from audit.reading.moments import MomentError
from audit.reading.opening import opened_words
from ledger.errors import LedgerError
from metadata.codec import RecordDecodeError
from metadata.person_opener import NO_OPENER, PersonOpener
from runtime.http.requests import JSON, Reply, Request
from runtime.loop.collection import resting

API: Final = "/api/"
_EXPECTED: Final = (
    AskedError,
    SearchError,
    MomentError,
    LookupError,
    ValueError,
)
_FAILED: Final = (LedgerError, NoLogError, RecordDecodeError, OSError, sqlite3.Error)
_HEADERS: Final = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
_encode = msgspec.json.Encoder().encode


class BuildProgress(msgspec.Struct, frozen=True):
    """How far the index or the verification is."""

    what: str = "opening the log"
    done: int = 0
    total: int = 0


class Console:
    """One log and its page."""

    def __init__(
        self,
        source: LogSource,
        folder: Path,
        *,
        now: Callable[[], float],
        deadline_s: float = 10.0,
        with_files: bool = True,
        explain: Explain | None = None,
        opener: Callable[[], PersonOpener] | None = None,
    ) -> None:
        """`folder`: of indexes. `now`: seconds of a clock that never goes back.

        `with_files` False: the log is that of running controllers, and no file can be verified.
        `explain` None: the console shows no reasons. `opener` returns what opens sealed addresses
        and names just now. Index and exports hold them sealed all the same.
        """
        self._source = source
        self._folder = folder
        self._now = now
        self._deadline_s = deadline_s
        self._with_files = with_files
        self._explain = explain
        self._opener = opener
        self._people = ConsolePeople()
        self._keeper: IndexKeeper | None = None
        self._index: LogIndex | None = None
        self._generation = -1
        self._progress = BuildProgress()
        self._proof = ProofStatus()
        self._findings = LogFindings()
        self._trouble = ""
        """Why the log could not be read just now."""

    # -- keeping the index up ------------------------------------------------------------------

    def keep_up(self, pause: Callable[[], bool]) -> None:
        """Build the index, verify the log, then follow it until `pause` returns False."""
        while True:
            try:
                self._catch_up()
                if self._proof.state == "waiting" and self._index is not None:
                    self._verify()
                self._judge()
                self._trouble = ""
            except _FAILED as error:
                self._trouble = str(error)
            if not pause():
                break
        if self._keeper is not None:
            self._keeper.close()

    def _catch_up(self) -> None:
        reader = self._source.newest()
        keeper = self._keeper
        if keeper is None:
            keeper = self._keeper = IndexKeeper(self._folder, self._source.replica, reader)
        with resting():
            keeper.bring_up(reader, lambda done, total: self._tell("building", done, total))
        if self._index is None or keeper.generation != self._generation:
            if self._index is not None:  # the log was replaced: nothing is known of the new one
                self._proof, self._findings = ProofStatus(), LogFindings()
            self._generation = keeper.generation
            self._index = LogIndex(keeper.path, now=self._now, deadline_s=self._deadline_s)
        self._proof = grown(self._proof, self._index.mark)

    def _verify(self) -> None:
        assert self._index is not None
        if self._with_files:
            self._proof = msgspec.structs.replace(self._proof, state="verifying")
            self._proof = verified(
                self._source.replica, lambda done, total: self._tell("verifying", done, total)
            )
            return
        mark, start = self._index.mark, self._index.log_start
        self._proof = ProofStatus("sound", mark.log_end, mark.head.hex(), start)

    def _judge(self) -> None:
        reader = self._source.newest()
        if self._findings.is_due(reader.log_end):
            self._tell("judging", 0, reader.log_end)
            with resting():
                self._findings = judged(self._source.replica, reader, with_files=self._with_files)

    def _tell(self, what: str, done: int, total: int) -> None:
        self._progress = BuildProgress(what, done, total)

    # -- answering -----------------------------------------------------------------------------

    def answer(self, request: Request) -> Reply:
        """Answer one request."""
        if request.method not in ("GET", "HEAD"):
            return _refusal(HTTPStatus.METHOD_NOT_ALLOWED, "The console only reads: use GET.")
        if not request.path.startswith(API):
            found = page_file(request.path)
            return found or _refusal(HTTPStatus.NOT_FOUND, "There is no such page.")
        return self._answer_api(request.path.removeprefix(API), request)

    def _answer_api(self, name: str, request: Request) -> Reply:
        if name == "status":
            return _json(self._status())
        index = self._index
        if index is None:
            return _refusal(
                HTTPStatus.SERVICE_UNAVAILABLE, self._trouble or "The index is being built."
            )
        asked = ConsoleQuery(request.query)
        try:
            opener = NO_OPENER
            if self._opener is not None:
                opener = self._people.opener(self._opener(), index)
            viewed = Viewed(
                index, self._source, self._findings, self._explain, self._people.also(opener)
            )
            if name == "export":
                said, body = exported(asked, viewed)
                return Reply(HTTPStatus.OK, body, {**_HEADERS, **said})
            view = VIEWS.get(name)
            if view is None:
                return _refusal(HTTPStatus.NOT_FOUND, f"There is no view {name[:40]!r}.")
            answer = view(asked, viewed)
            asked.done()
            if self._opener is not None:
                answer = opened_words(opener, msgspec.to_builtins(answer))
            return _json(answer)
        except TooSlowError as error:
            return _refusal(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except _FAILED as error:
            return _refusal(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        except _EXPECTED as error:
            return _refusal(HTTPStatus.BAD_REQUEST, str(error.args[0] if error.args else error))

    def _status(self) -> dict[str, Any]:
        index, keeper = self._index, self._keeper
        said: dict[str, Any] = {
            "ready": index is not None,
            "progress": self._progress,
            "location": self._source.replica.location,
            "live": self._source.replica.live,
            "proof": self._proof,
            "damage": "" if keeper is None else keeper.damage,
            "trouble": self._trouble,
            "exportMax": EXPORT_MAX,
            "hasFindings": self._findings.is_ready,
        }
        if index is not None:
            mark = index.mark
            first = index.batch_before(index.log_start + 1)
            said |= {
                "logStart": index.log_start,
                "logEnd": mark.log_end,
                "firstMs": mark.timestamp_ms if first is None else first.time_ms,
                "lastMs": mark.timestamp_ms,
                "head": mark.head.hex(),
            }
        return said


def _json(value: Any) -> Reply:
    return Reply(HTTPStatus.OK, _encode(value), {**_HEADERS, "content-type": JSON})


def _refusal(status: HTTPStatus, sentence: str) -> Reply:
    return Reply(status, _encode({"message": sentence}), {**_HEADERS, "content-type": JSON})
