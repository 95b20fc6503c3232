"""The degraded modes of a controller, and what it answers in each of them, as a table.

Each mode has a row, and a row has a cell for everything that a request can ask for. A node knows
five of the modes and refuses by them (`controller/http/degraded.py`). In the other modes the
answers follow from how the rooms of the controller work. The tests bring real cores into every
mode, send every kind of request, and compare. `docs/degraded.md` is made from the table.

Every refusal says why, and whether and when to try again. It comes soon: without a majority, a
request that needs one is refused within a second. Requests that need no majority are still served.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from controller.http.route import READS, Route
from metadata.errors import ErrorCode


class Column(StrEnum):
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


_BY_NAME: Final[Mapping[str, tuple[Column, ...]]] = MappingProxyType(
    {
        "metadata_fetch": (Column.BROKER,),
        "alter_partition": (Column.ISR,),
        "assign_replicas": (Column.ISR,),
        "list_snapshots": (Column.SNAPSHOT,),
        "read_snapshot": (Column.SNAPSHOT,),
        "list_segments": (Column.SNAPSHOT,),
        "read_segment": (Column.SNAPSHOT,),
        "run_archive": (Column.LOG,),
        "read_signed_head": (Column.SNAPSHOT,),
        "read_tile": (Column.SNAPSHOT,),
        "make_proof": (Column.SNAPSHOT,),
        "read_subject_keys": (Column.SNAPSHOT,),
        "read_log": (Column.LOG,),
        "watch_resource": (Column.LOG,),
        "watch_coordination": (Column.LOG,),
        "join": (Column.CHANGE,),
        "renew_session": (Column.READ,),
        "transfer_leadership": (Column.READ,),
        "keep_import_part": (Column.READ,),
        "ready": (Column.READY,),
    }
)


def columns_of(route: Route) -> tuple[Column, ...]:
    """Return what a route can ask for. Raises KeyError if the route isn't in the table."""
    if route.name in _BY_NAME:
        return _BY_NAME[route.name]
    if route.always:
        return (Column.OWN,)
    if route.changes or route.joins_changes:
        return (Column.CHANGE, Column.DRY_RUN)
    if set(READS) <= set(route.parameters):
        return (Column.READ, Column.STALE, Column.AT_LEAST)
    raise KeyError(route.name)


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
_SERVED: Final[Mapping[Column, DegradedAnswer]] = MappingProxyType(dict.fromkeys(Column, DONE))


def _row(
    cells: Mapping[Column, DegradedAnswer], *, ready: bool = False
) -> Mapping[Column, DegradedAnswer]:
    return MappingProxyType({**_SERVED, Column.READY: DONE if ready else _UNREADY, **cells})


def _everything(code: ErrorCode) -> Mapping[Column, DegradedAnswer]:
    return _row(dict.fromkeys(set(Column) - {Column.OWN, Column.READY}, _now(code)))


def _by_the_leader(code: ErrorCode) -> dict[Column, DegradedAnswer]:
    needed = (Column.BROKER, Column.ISR, Column.CHANGE, Column.DRY_RUN, Column.READ)
    return dict.fromkeys(needed, _now(code))


_LEADERLESS = _row(_by_the_leader(_E.NO_QUORUM))
_FOLLOWING = _row(_by_the_leader(_E.NOT_CONTROLLER))


class Row(NamedTuple):
    """The answers in one mode."""

    cells: Mapping[Column, DegradedAnswer]
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
                    Column.ISR: DegradedAnswer(_E.REQUEST_TIMED_OUT, NO_QUORUM_S),
                    Column.CHANGE: DegradedAnswer(_E.REQUEST_TIMED_OUT, NO_QUORUM_S),
                    Column.DRY_RUN: DegradedAnswer(_E.NO_QUORUM, NO_QUORUM_S),
                    Column.READ: DegradedAnswer(_E.NO_QUORUM, NO_QUORUM_S),
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
                dict.fromkeys(
                    (Column.ISR, Column.CHANGE), DegradedAnswer(_E.REQUEST_TIMED_OUT, STUCK_S)
                ),
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
            _row(dict.fromkeys((Column.ISR, Column.CHANGE, Column.DRY_RUN), _now(_E.DISK_FULL))),
            "there is room again; until then a node leads for reads and brokers, and fences nobody",
        ),
        DegradedMode.LEDGER_FULL: Row(
            _row(
                dict.fromkeys(
                    (Column.ISR, Column.CHANGE, Column.DRY_RUN, Column.READ), _now(_E.DISK_FULL)
                )
            ),
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
            _row(dict.fromkeys((Column.CHANGE, Column.DRY_RUN), _now(_E.THROTTLED)), ready=True),
            "fewer changes wait; decisions for brokers and fencing go first",
        ),
        DegradedMode.CROWDED: Row(
            _row({}, ready=True), "fewer requests are held; further ones are answered at once"
        ),
    }
)
