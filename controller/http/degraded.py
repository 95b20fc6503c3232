"""Degraded modes: what a controller that can't do all of its part answers, as data.

Rule: for every mode there is a row, and in it a cell for everything that can be asked for. The
node itself is driven by the rows of the modes that it knows to be in (`refusal`); in the others
the same answers come about by themselves, and the tests put real cores into each mode, ask for
everything and compare. `docs/degraded.md` is made from it.

Whoever may be refused is told why, whether and when to try again, and soon: nothing that needs a
majority waits for more than a second without one. What needs none goes on.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from controller.http.routes import READS, Route
from metadata.errors import ErrorCode, LogbergError


class Ask(StrEnum):
    """What a request needs of the node, which decides the answer."""

    BROKER = "broker's call"
    CHANGE = "change"
    DRY_RUN = "dry run"
    READ = "read"
    STALE = "stale read"
    AT_LEAST = "read with `minOffset`"
    LOG = "log"
    SNAPSHOT = "snapshot"
    READY = "`/health/ready`"
    OWN = "the node's own word"


_BY_NAME: Final[Mapping[str, tuple[Ask, ...]]] = MappingProxyType(
    {
        "metadata_fetch": (Ask.BROKER,),
        "read_snapshot": (Ask.SNAPSHOT,),
        "read_log": (Ask.LOG,),
        "ready": (Ask.READY,),
    }
)


def asks_of(route: Route) -> tuple[Ask, ...]:
    """Return what can be asked for by a route. Raises KeyError: it has no place in the table."""
    if route.name in _BY_NAME:
        return _BY_NAME[route.name]
    if route.always:
        return (Ask.OWN,)
    if route.changes:
        return (Ask.CHANGE, Ask.DRY_RUN)
    if set(READS) <= set(route.parameters):
        return (Ask.READ, Ask.STALE, Ask.AT_LEAST)
    raise KeyError(route.name)


def ask_of(route: Route, query: Mapping[str, str]) -> Ask:
    """Return what a request asks for; a dry run counts as the change that it shows."""
    ask = asks_of(route)[0]
    if ask is Ask.READ and "minOffset" in query:
        return Ask.AT_LEAST
    if ask is Ask.READ and query.get("consistency") == "stale":
        return Ask.STALE
    return ask


class DegradedMode(StrEnum):
    """How a node stands, when not all is well."""

    NO_QUORUM = "no quorum: a standby"
    CUT_OFF = "no quorum: a leader that was just cut off"
    DEPOSED = "no quorum: a leader that knows it was cut off"
    FORMING = "first start: not all are here"
    UNNOTICED = "the leader went silent, and nobody doubts it yet"
    ELECTING = "electing"
    LOADING = "loading its log"
    STUCK = "the leader's disk does not answer"
    ROOM_LEADER = "disk almost full: the one that led"
    ROOM_FOLLOWER = "disk almost full: a follower"
    ROOM_MAJORITY = "disk almost full: a majority, one has room"
    ROOM_ALL = "disk almost full: all, the leader"
    LEDGER_FULL = "the leader's ledger finds no room"
    STOPPED = "stopped by its disk"
    DAMAGED = "its journal is damaged"
    OBSERVING = "an empty folder: it observes"
    DIVERGED = "its state differs from the others'"
    STOPPING = "it is stopping"
    OVERLOADED = "more changes than it can decide"
    CROWDED = "more held calls than it keeps"


class DegradedAnswer(NamedTuple):
    """One answer."""

    code: ErrorCode | None
    """None: it is done."""
    within_s: float


AT_ONCE_S = 0.05
NO_QUORUM_S = 1.0
"""What needs a majority, and can't have it, is told within this; twice E, of 0.5 s."""
STUCK_S = 1.5
"""A leader whose disk is stuck says so after twice E, and hands over within another."""
_E = ErrorCode
DONE = DegradedAnswer(None, AT_ONCE_S)


def _now(code: ErrorCode) -> DegradedAnswer:
    return DegradedAnswer(code, AT_ONCE_S)


_UNREADY = _now(_E.NO_QUORUM)
"""Of `/health/ready` only the status counts, 503: its body says why in words."""
_SERVED: Final[Mapping[Ask, DegradedAnswer]] = MappingProxyType(dict.fromkeys(Ask, DONE))


def _row(
    cells: Mapping[Ask, DegradedAnswer], *, ready: bool = False
) -> Mapping[Ask, DegradedAnswer]:
    return MappingProxyType({**_SERVED, Ask.READY: DONE if ready else _UNREADY, **cells})


def _everything(code: ErrorCode) -> Mapping[Ask, DegradedAnswer]:
    return _row({ask: _now(code) for ask in Ask if ask not in (Ask.OWN, Ask.READY)})


def _by_the_leader(code: ErrorCode) -> dict[Ask, DegradedAnswer]:
    return {ask: _now(code) for ask in (Ask.BROKER, Ask.CHANGE, Ask.DRY_RUN, Ask.READ)}


_LEADERLESS = _row(_by_the_leader(_E.NO_QUORUM))
_FOLLOWING = _row(_by_the_leader(_E.NOT_CONTROLLER))


class Row(NamedTuple):
    """One mode."""

    cells: Mapping[Ask, DegradedAnswer]
    then: str
    """What ends it."""


TABLE: Final[Mapping[DegradedMode, Row]] = MappingProxyType(
    {
        DegradedMode.NO_QUORUM: Row(
            _LEADERLESS, "a majority runs and its members reach each other"
        ),
        DegradedMode.CUT_OFF: Row(
            _row(
                {
                    Ask.CHANGE: DegradedAnswer(_E.REQUEST_TIMED_OUT, NO_QUORUM_S),
                    Ask.DRY_RUN: DegradedAnswer(_E.NO_QUORUM, NO_QUORUM_S),
                    Ask.READ: DegradedAnswer(_E.NO_QUORUM, NO_QUORUM_S),
                },
                ready=True,
            ),
            "it knows within E; stale reads tell their age meanwhile, brokers are answered",
        ),
        DegradedMode.DEPOSED: Row(_LEADERLESS, "it reaches a majority again"),
        DegradedMode.FORMING: Row(_LEADERLESS, "every configured controller was started once"),
        DegradedMode.UNNOTICED: Row(
            _row(_by_the_leader(_E.NOT_CONTROLLER), ready=True),
            "E to 2E pass, or the leader is back",
        ),
        DegradedMode.ELECTING: Row(
            _LEADERLESS, "one is elected: within 2E, if a majority is there"
        ),
        DegradedMode.LOADING: Row(
            _everything(_E.OFFSET_NOT_AVAILABLE), "the log is loaded; `status` tells how far it is"
        ),
        DegradedMode.STUCK: Row(
            _row(
                {Ask.CHANGE: DegradedAnswer(_E.REQUEST_TIMED_OUT, STUCK_S)},
                ready=True,
            ),
            "after 2E it hands over, and follows as far as its disk does",
        ),
        DegradedMode.ROOM_LEADER: Row(_FOLLOWING, "there is room; it may lead again"),
        DegradedMode.ROOM_FOLLOWER: Row(
            _FOLLOWING, "there is room; it goes on following meanwhile"
        ),
        DegradedMode.ROOM_MAJORITY: Row(
            _FOLLOWING, "there is room; the one that has it leads, changes go on"
        ),
        DegradedMode.ROOM_ALL: Row(
            _row({Ask.CHANGE: _now(_E.DISK_FULL), Ask.DRY_RUN: _now(_E.DISK_FULL)}),
            "there is room; one leads meanwhile, for reads and brokers, and fences nobody",
        ),
        DegradedMode.LEDGER_FULL: Row(
            _row(dict.fromkeys((Ask.CHANGE, Ask.DRY_RUN, Ask.READ), _now(_E.DISK_FULL))),
            "there is room, it tries again each second; or another leads",
        ),
        DegradedMode.STOPPED: Row(
            _everything(_E.SHUTTING_DOWN),
            "the process has ended, with exit code 74; start it when the disk is well",
        ),
        DegradedMode.DAMAGED: Row(
            _FOLLOWING,
            "it has caught up with a leader that was elected without it; no voice until then",
        ),
        DegradedMode.OBSERVING: Row(_FOLLOWING, "its old folder is put back"),
        DegradedMode.DIVERGED: Row(
            _everything(_E.STATE_DIVERGED), "see the runbook: a defect, or the machine"
        ),
        DegradedMode.STOPPING: Row(_everything(_E.SHUTTING_DOWN), "the process has ended"),
        DegradedMode.OVERLOADED: Row(
            _row({Ask.CHANGE: _now(_E.THROTTLED), Ask.DRY_RUN: _now(_E.THROTTLED)}, ready=True),
            "fewer wait; what brokers need, and fencing, is decided first",
        ),
        DegradedMode.CROWDED: Row(
            _row({}, ready=True), "fewer are held; the others are answered at once"
        ),
    }
)

RETRY_AFTER_S: Final[Mapping[ErrorCode, int]] = MappingProxyType(
    dict.fromkeys(
        (
            _E.NO_QUORUM,
            _E.REQUEST_TIMED_OUT,
            _E.OFFSET_NOT_AVAILABLE,
            _E.UNKNOWN_LEADER_EPOCH,
            _E.THROTTLED,
            _E.DISK_FULL,
        ),
        1,
    )
)
"""When to ask the same node again (header retry-after, `retryAfterMs`). With the other codes that
may be tried again another node is to be asked, at once."""


def refusal(mode: DegradedMode, ask: Ask, why: str) -> LogbergError | None:
    """Return why a node in a mode doesn't do this; None: it does."""
    code = TABLE[mode].cells[ask].code
    return None if code is None else LogbergError(code, why)


def retry_after_ms(code: ErrorCode) -> int | None:
    """Return how long to wait before asking the same node again; None: don't."""
    seconds = RETRY_AFTER_S.get(code)
    return None if seconds is None else seconds * 1000
