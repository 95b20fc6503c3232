"""The degraded modes that a controller notices about itself, and which requests it refuses in each.

There are more modes, such as an election or a full disk. They need no rule here: their answers
follow from how the other rooms work. `docs/degraded.md` lists all modes with their answers, and
`tests/degraded/` tries them.

Rule: every refusal says why, and whether and when to try again.
"""

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Final, NamedTuple

from controller.http.route import CONSISTENCY, MIN_OFFSET, Route
from metadata.errors import ErrorCode


class Ask(Enum):
    """What a request asks of the node."""

    CHANGE = auto()
    """A dry run counts as a change."""
    ISR = auto()
    """A broker's change of in-sync replicas. It goes before the changes that people ask for."""
    FRESH_READ = auto()
    """What only the active controller answers and nobody writes: a read, a session's renewal, or
    a part of an import."""
    OTHER = auto()


def ask_of(route: Route, query: Mapping[str, str]) -> Ask:
    """Return what a request asks of the node."""
    if route.changes or route.joins_changes:
        return Ask.CHANGE
    if route.name in ("alter_partition", "assign_replicas"):
        return Ask.ISR
    if route.name in ("renew_session", "keep_import_part", "transfer_leadership"):
        return Ask.FRESH_READ
    if CONSISTENCY not in route.parameters or MIN_OFFSET not in route.parameters:
        return Ask.OTHER
    fresh = "minOffset" not in query and query.get("consistency") != "stale"
    return Ask.FRESH_READ if fresh else Ask.OTHER


class KnownMode(NamedTuple):
    """A mode that the node knows to be in."""

    code: ErrorCode
    """The error of what it refuses."""
    refused: frozenset[Ask]


_E = ErrorCode
_ALL = frozenset(Ask)
STOPPED: Final = KnownMode(_E.SHUTTING_DOWN, _ALL)
DIVERGED: Final = KnownMode(_E.STATE_DIVERGED, _ALL)
LOADING: Final = KnownMode(_E.OFFSET_NOT_AVAILABLE, _ALL)
LEDGER_FULL: Final = KnownMode(_E.DISK_FULL, _ALL - {Ask.OTHER})
OVERLOADED: Final = KnownMode(_E.THROTTLED, frozenset({Ask.CHANGE}))

RETRY_AFTER_S: Final[Mapping[ErrorCode, int]] = MappingProxyType(
    dict.fromkeys(
        (
            _E.NO_QUORUM,
            _E.REQUEST_TIMED_OUT,
            _E.OFFSET_NOT_AVAILABLE,
            _E.THROTTLED,
            _E.DISK_FULL,
        ),
        1,
    )
)
"""Seconds after which to ask the same node again (header retry-after, `retryAfterMs`). With other
retriable codes, the caller should ask another node at once."""


def retry_after_ms(code: ErrorCode) -> int | None:
    """Return how long to wait before asking the same node again; None: ask another node."""
    seconds = RETRY_AFTER_S.get(code)
    return None if seconds is None else seconds * 1000
