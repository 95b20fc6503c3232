"""Counts and logs refused attempts, with a limit on the number of log lines.

Rule: the counts are exact, and the number of lines is limited. The first refusal of a kind is
logged at once, with all its fields. Further refusals of that kind, and kinds beyond `LINES_AT_ONCE`
in an interval, are logged at the end of the interval: one line for each kind, with a `count`. So
an attacker can cause at most `LINES_AT_ONCE` + `KINDS_MAX` + 1 lines in an interval.
"""

from collections import Counter
from collections.abc import Callable, Mapping

from structlog.typing import FilteringBoundLogger

from runtime.sockets.attempts import Attempt

REQUEST = "request_refused"
HANDSHAKE = "tls_handshake_failed"
LINK = "link_rejected"
KAFKA = "kafka_request_refused"
KAFKA_DEFECT = "kafka_request_failed"
ACCESS = "access_refused"
SUBMISSION = "submission_refused"
INTERVAL_S = 30.0
LINES_AT_ONCE = 20
KINDS_MAX = 50
FIELD_CHARS_MAX = 200
_Kind = tuple[str, tuple[tuple[str, str], ...]]


_CONNECTIONS = {HANDSHAKE: "TLS_HANDSHAKE_FAILED", LINK: "LINK_REJECTED"}
"""Events in which a connection is refused before anything is asked on it, and their codes."""


def _connection(event: str, fields: Mapping[str, str]) -> Attempt:
    why = fields.get("error") or fields.get("reason", "")
    door = fields.get("door", "quorum")
    code = _CONNECTIONS[event]
    return Attempt("", "", "connect", f"door:{door}", fields.get("address", ""), code, why)


class Refusals:
    """Counts and logs refused attempts of one process."""

    def __init__(
        self,
        log: FilteringBoundLogger,
        call_later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self._log = log
        self._call_later = call_later
        self._told: set[_Kind] = set()
        self._untold: Counter[_Kind] = Counter()
        self._others = 0
        self._is_due = False
        self.counters: Counter[str] = Counter()
        """For metrics: the number of attempts, by event."""
        self.on_attempt: Callable[[Attempt], None] | None = None
        """Gets each attempt that was refused because of who asks, for whoever keeps a trail."""

    def attempted(self, attempt: Attempt) -> None:
        """Pass on an attempt that was refused because of who asks."""
        if self.on_attempt is not None:
            self.on_attempt(attempt)

    def refused(self, event: str, **fields: str) -> None:
        """Count an attempt, and log it now or at the end of the interval."""
        self.counters[event] += 1
        if event in _CONNECTIONS:
            self.attempted(_connection(event, fields))
        kind = (event, tuple((key, text[:FIELD_CHARS_MAX]) for key, text in fields.items()))
        if not self._is_due:
            self._is_due = True
            self._call_later(INTERVAL_S, self._tell)
        if kind in self._told:
            self._untold[kind] += 1
        elif len(self._told) < LINES_AT_ONCE:
            self._told.add(kind)
            self._write(kind, 1)
        elif kind in self._untold or len(self._untold) < KINDS_MAX:
            self._untold[kind] += 1
        else:
            self._others += 1

    def _tell(self) -> None:
        self._is_due = False
        for kind, count in self._untold.items():
            self._write(kind, count)
        if self._others:
            self._log.warning("refusals_not_listed", count=self._others)
        if self._untold or self._others:
            # A kind that goes on is logged once in each interval. It is not logged at once again
            # when the next interval begins.
            self._told = set(list(self._untold)[:LINES_AT_ONCE])
            self._is_due = True
            self._call_later(INTERVAL_S, self._tell)
        else:
            self._told.clear()
        self._untold.clear()
        self._others = 0

    def _write(self, kind: _Kind, count: int) -> None:
        event, fields = kind
        said = dict(fields).get
        if event == REQUEST:
            self._log.warning(
                "request_refused",
                who=said("who"),
                address=said("address"),
                route=said("route"),
                why=said("why"),
                count=count,
            )
        elif event == HANDSHAKE:
            self._log.info(
                "tls_handshake_failed",
                door=said("door"),
                address=said("address"),
                error=said("error"),
                count=count,
            )
        elif event == KAFKA:
            self._log.warning(
                "kafka_request_refused",
                address=said("address"),
                error=said("error"),
                count=count,
            )
        elif event == ACCESS:
            self._log.warning(
                "access_refused",
                who=said("who"),
                address=said("address"),
                operation=said("operation"),
                lacks=said("lacks"),
                enforced=said("enforced"),
                count=count,
            )
        elif event == SUBMISSION:
            self._log.warning(
                "submission_refused", outcome=said("outcome"), why=said("why"), count=count
            )
        elif event == KAFKA_DEFECT:
            self._log.error(
                "kafka_request_failed",
                request=said("request"),
                error=said("error"),
                count=count,
            )
        else:
            self._log.warning(
                "link_rejected",
                address=said("address"),
                peer=said("peer"),
                reason=said("reason"),
                count=count,
            )
