"""Divides the process's file descriptors between connections and everything else.

Rule: anybody can open connections, so connections never get all descriptors. A reserve is kept for
the quorum's links, the journal, the ledger and checkpoints, because a node that cannot open a file
or dial a peer drops out of the quorum. The shares are computed from RLIMIT_NOFILE when the process
starts.
"""

import resource
from typing import NamedTuple

RESERVE = 256
"""Descriptors for open links, dials, files and the event loop; at most half of all."""
QUORUM_SHARE = 8
"""Each class of connections on the quorum port that have not greeted gets the rest divided by this
number."""


class Descriptors(NamedTuple):
    """How many descriptors each part of the process may use."""

    total: int
    """All of them: the soft limit."""
    reserve: int
    http: int
    """Connections on the HTTP port and the unix socket together."""
    quorum_strangers: int
    """Connections on the quorum port that have not greeted, in each of two classes: from
    addresses of configured controllers, and from others."""


def soft_limit() -> int:
    """Return how many descriptors this process may open now."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def raise_limit() -> int:
    """Raise the soft limit to the hard limit if possible; return the resulting soft limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            return soft
    return hard


def divide(total: int) -> Descriptors:
    """Divide `total` descriptors between the parts of a process."""
    if total == resource.RLIM_INFINITY:
        total = 1_000_000
    reserve = min(RESERVE, total // 2)
    rest = total - reserve
    strangers = max(1, rest // QUORUM_SHARE)
    return Descriptors(total, reserve, max(1, rest - 2 * strangers), strangers)
