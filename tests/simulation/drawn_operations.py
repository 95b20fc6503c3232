"""Draws which administrators' operations run in a seed beside those of its kind.

Rule: a random source of its own draws them, and nothing else follows from that source. So the
cluster and the faults of a seed are drawn the same with these operations and without. A seed that
was recorded before there was this draw runs with `operations=()`, and is the same run as before.
"""

from collections.abc import Collection
from random import Random
from typing import Any

MOVES = "moves"
"""Reassignments, more partitions, log directories, elections: those of the kind `moves`."""
CLIENTS = "clients"
"""Access control, quotas, credentials, tokens, producer ids, declarations: those of the kind
`clients`."""
JOINED = "joined"
"""Administrators' changes go many in one request (`tests.simulation.joined_requests`)."""
OPERATIONS = (MOVES, CLIENTS, JOINED)
SHARE = 0.15
"""Of the seeds of a kind, for each of them."""
WITHOUT = frozenset({"releases", "archive", "rights"})
"""Kinds in which none is drawn. In `rights` their administrators would need rights. In `releases`
the levels of features, which these operations need, are raised and lowered by clients of its own;
in `archive` no node's own log goes back to the beginning, which their judges read."""
_BROKERS_MIN = 4
_TOPICS_MAX = 12


def draw(seed: int, kind: str) -> tuple[str, ...]:
    """Return what a seed draws: some of `OPERATIONS`, mostly none."""
    dice = Random(f"operations/{kind}/{seed}")
    drawn = tuple(name for name in OPERATIONS if dice.random() < SHARE)
    return () if kind in WITHOUT else drawn


def add(shape: Any, operations: Collection[str]) -> None:
    """Let these operations run in a cluster."""
    if MOVES in operations:
        shape.replicated = shape.moved = True
        shape.brokers = max(shape.brokers, _BROKERS_MIN)
        shape.topics_max = min(shape.topics_max, _TOPICS_MAX)
    if CLIENTS in operations:
        shape.clients = True
    if JOINED in operations:
        shape.joined = True


def parse(text: str) -> tuple[str, ...]:
    """Return the operations that a command line names: `moves,clients`, or `none`.

    Raises ValueError for another name.
    """
    names = () if text == "none" else tuple(text.split(","))
    if not set(names) <= set(OPERATIONS):
        raise ValueError(f"{text}: none, or some of {', '.join(OPERATIONS)}")
    return names
