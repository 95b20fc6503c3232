"""The degraded modes of a controller, and what it answers in each of them, as a table.

Each mode has a row, and a row has a cell for everything that a request can ask for. A node that
knows that it is in a mode answers by that row (`refusal`). The node doesn't know of the other
modes: there the same answers follow from how the other rooms work. The tests bring real cores into
every mode, send every kind of request, and compare. `docs/degraded.md` is made from the table.

Every refusal says why, and whether and when to try again. It comes soon: without a majority, a
request that needs one is refused within a second. Requests that need no majority are still served.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from controller.http.route import READS, Route
from metadata.errors import ErrorCode, LogbergError


class Ask(StrEnum):
    """What a request asks for. It determines the column of the table."""

    BROKER = "broker's call"
    ISR = "change of ISRs"
    CHANGE = "change"
    DRY_RUN = "dry run"
    READ = "read"
    STALE = "stale read"
    AT_LEAST = "read with `minOffset`"
    LOG = "log"
    SNAPSHOT = "snapshot"
    READY = "`/health/ready`"
    OWN = "the node about itself"


_BY_NAME: Final[Mapping[str, tuple[Ask, ...]]] = MappingProxyType(
    {
        "metadata_fetch": (Ask.BROKER,),
        "alter_partition": (Ask.ISR,),
        "read_snapshot": (Ask.SNAPSHOT,),
        "read_log": (Ask.LOG,),
        "ready": (Ask.READY,),
    }
)


def asks_of(route: Route) -> tuple[Ask, ...]:
    """Return what a route can ask for. Raises KeyError if the route isn't in the table."""
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
    """Return what a request asks for. A dry run counts as a change."""
    ask = asks_of(route)[0]
    if ask is Ask.READ and "minOffset" in query:
        return Ask.AT_LEAST
    if ask is Ask.READ and query.get("consistency") == "stale":
        return Ask.STALE
    return ask


class DegradedMode(StrEnum):
    """A state in which a node can't do everything."""

    NO_QUORUM = "no quorum: a standby"
    CUT_OFF = "no quorum: a leader that was just cut off"
    DEPOSED = "no quorum: a leader that knows that it was cut off"
    FORMING = "first start: some controllers are missing"
    UNNOTICED = "the leader went silent, and no election has begun yet"
    ELECTING = "an election is under way"
    LOADING = "loading its log"
    STUCK = "the leader's disk does not answer"
    ROOM_LEADER = "disk almost full: the node that led"
    ROOM_FOLLOWER = "disk almost full: a follower"
    ROOM_MAJORITY = "disk almost full on a majority, one node has room"
    ROOM_ALL = "disk almost full on all nodes: the leader"
    LEDGER_FULL = "the leader's ledger has no room"
    STOPPED = "stopped by its disk"
    DAMAGED = "its journal is damaged"
    OBSERVING = "an empty folder: it observes"
    DIVERGED = "its state differs from the others'"
    STOPPING = "it is stopping"
    OVERLOADED = "more changes than it can decide"
    CROWDED = "more held requests than it keeps"


class DegradedAnswer(NamedTuple):
    """The answer in one cell of the table."""

    code: ErrorCode | None
    """None: the request is served."""
    within_s: float


AT_ONCE_S = 0.05
NO_QUORUM_S = 1.0
"""Requests that need a majority are refused within this time if there is none. It is twice the
election timeout E of 0.5 s."""
STUCK_S = 1.5
"""A leader whose disk doesn't answer reports it after twice E, and hands over within one more E."""
_E = ErrorCode
DONE = DegradedAnswer(None, AT_ONCE_S)


def _now(code: ErrorCode) -> DegradedAnswer:
    return DegradedAnswer(code, AT_ONCE_S)


_UNREADY = _now(_E.NO_QUORUM)
"""For `/health/ready` only the status 503 counts. The body says why in words."""
_SERVED: Final[Mapping[Ask, DegradedAnswer]] = MappingProxyType(dict.fromkeys(Ask, DONE))


def _row(
    cells: Mapping[Ask, DegradedAnswer], *, ready: bool = False
) -> Mapping[Ask, DegradedAnswer]:
    return MappingProxyType({**_SERVED, Ask.READY: DONE if ready else _UNREADY, **cells})


def _everything(code: ErrorCode) -> Mapping[Ask, DegradedAnswer]:
    return _row({ask: _now(code) for ask in Ask if ask not in (Ask.OWN, Ask.READY)})


def _by_the_leader(code: ErrorCode) -> dict[Ask, DegradedAnswer]:
    return {ask: _now(code) for ask in (Ask.BROKER, Ask.ISR, Ask.CHANGE, Ask.DRY_RUN, Ask.READ)}


_LEADERLESS = _row(_by_the_leader(_E.NO_QUORUM))
_FOLLOWING = _row(_by_the_leader(_E.NOT_CONTROLLER))


class Row(NamedTuple):
    """The answers in one mode."""

    cells: Mapping[Ask, DegradedAnswer]
    then: str
    """What ends the mode."""


TABLE: Final[Mapping[DegradedMode, Row]] = MappingProxyType(
    {
        DegradedMode.NO_QUORUM: Row(
            _LEADERLESS, "a majority runs and its members reach each other"
        ),
        DegradedMode.CUT_OFF: Row(
            _row(
                {
                    Ask.ISR: DegradedAnswer(_E.REQUEST_TIMED_OUT, NO_QUORUM_S),
                    Ask.CHANGE: DegradedAnswer(_E.REQUEST_TIMED_OUT, NO_QUORUM_S),
                    Ask.DRY_RUN: DegradedAnswer(_E.NO_QUORUM, NO_QUORUM_S),
                    Ask.READ: DegradedAnswer(_E.NO_QUORUM, NO_QUORUM_S),
                },
                ready=True,
            ),
            "the node notices it, within E; until then it answers brokers; stale reads give an age",
        ),
        DegradedMode.DEPOSED: Row(_LEADERLESS, "the node reaches a majority again"),
        DegradedMode.FORMING: Row(_LEADERLESS, "every configured controller was started once"),
        DegradedMode.UNNOTICED: Row(
            _row(_by_the_leader(_E.NOT_CONTROLLER), ready=True),
            "E to 2E pass, or the leader is back",
        ),
        DegradedMode.ELECTING: Row(
            _LEADERLESS, "a leader is elected, within 2E if a majority runs"
        ),
        DegradedMode.LOADING: Row(
            _everything(_E.OFFSET_NOT_AVAILABLE), "the log is loaded; `status` shows how far it is"
        ),
        DegradedMode.STUCK: Row(
            _row(
                dict.fromkeys((Ask.ISR, Ask.CHANGE), DegradedAnswer(_E.REQUEST_TIMED_OUT, STUCK_S)),
                ready=True,
            ),
            "after 2E the node hands over, and then follows as far as its disk allows",
        ),
        DegradedMode.ROOM_LEADER: Row(
            _FOLLOWING, "there is room again; then the node may lead again"
        ),
        DegradedMode.ROOM_FOLLOWER: Row(
            _FOLLOWING, "there is room again; until then the node keeps following"
        ),
        DegradedMode.ROOM_MAJORITY: Row(
            _FOLLOWING,
            "there is room again; until then the node with room leads, and changes are served",
        ),
        DegradedMode.ROOM_ALL: Row(
            _row(dict.fromkeys((Ask.ISR, Ask.CHANGE, Ask.DRY_RUN), _now(_E.DISK_FULL))),
            "there is room again; until then a node leads for reads and brokers, and fences nobody",
        ),
        DegradedMode.LEDGER_FULL: Row(
            _row(dict.fromkeys((Ask.ISR, Ask.CHANGE, Ask.DRY_RUN, Ask.READ), _now(_E.DISK_FULL))),
            "there is room again, which the node checks each second, or another node leads",
        ),
        DegradedMode.STOPPED: Row(
            _everything(_E.SHUTTING_DOWN),
            "the process has ended with exit code 74; start it again when the disk works",
        ),
        DegradedMode.DAMAGED: Row(
            _FOLLOWING,
            "it caught up with a leader that was elected without it; until then it doesn't vote",
        ),
        DegradedMode.OBSERVING: Row(_FOLLOWING, "the node's old folder is restored"),
        DegradedMode.DIVERGED: Row(
            _everything(_E.STATE_DIVERGED), "the cause is a defect or the machine: see the runbook"
        ),
        DegradedMode.STOPPING: Row(_everything(_E.SHUTTING_DOWN), "the process has ended"),
        DegradedMode.OVERLOADED: Row(
            _row({Ask.CHANGE: _now(_E.THROTTLED), Ask.DRY_RUN: _now(_E.THROTTLED)}, ready=True),
            "fewer changes wait; decisions for brokers and fencing go first",
        ),
        DegradedMode.CROWDED: Row(
            _row({}, ready=True), "fewer requests are held; further ones are answered at once"
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
"""Seconds after which to ask the same node again (header retry-after, `retryAfterMs`). With other
retriable codes, the caller should ask another node at once."""


def refusal(mode: DegradedMode, ask: Ask, why: str) -> LogbergError | None:
    """Return the error of a node in this mode; None if it serves the request."""
    code = TABLE[mode].cells[ask].code
    return None if code is None else LogbergError(code, why)


def retry_after_ms(code: ErrorCode) -> int | None:
    """Return how long to wait before asking the same node again; None: ask another node."""
    seconds = RETRY_AFTER_S.get(code)
    return None if seconds is None else seconds * 1000
