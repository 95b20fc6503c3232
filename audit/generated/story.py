"""What happens in a made-up cluster, as tables: episodes, what recurs, and daily business.

Rule: episodes come in a fixed order, each at its share of the history, so that a short history has
them all. `Life` plays these tables.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from audit.generated import (
    brokers,
    coordinating,
    failures,
    large_operations,
    replicas,
    security,
    topics,
    works,
)
from audit.generated.rhythm import DAY_MS
from audit.generated.stage import Stage, Story

Happening = Callable[[Stage], Story | None]
_MANY_DEPLOYMENTS: Final = 20_000
"""Records of a history that has more than one."""
_RELEASE: Final = partial(
    works.raise_level,
    name="metadata.version",
    level=26,
    why="all brokers run the new release",
)
_KEEP_ELR: Final = partial(
    works.raise_level,
    name="eligible.leader.replicas.version",
    level=1,
    why="partitions remember who is safe to elect",
)


class Episode(NamedTuple):
    """Something that happens once; no other episode begins before it is over."""

    share: float
    """How much of the history is over when it begins."""
    by_day: bool
    """People begin it, so it waits for the morning."""
    happens: Happening
    records_least: int = 0
    """A shorter history goes without it."""


EPISODES: Final = (
    Episode(0.12, True, works.deployment),
    Episode(0.20, True, large_operations.big_change),
    Episode(0.24, False, failures.broker_dies),
    Episode(0.31, True, large_operations.aborted_change),
    Episode(0.34, False, failures.broker_flaps),
    Episode(0.37, True, works.deployment, _MANY_DEPLOYMENTS),
    Episode(0.40, True, _RELEASE),
    Episode(0.45, False, failures.rack_outage),
    Episode(0.52, False, failures.isr_storm),
    Episode(0.58, False, failures.unclean_election),
    Episode(0.62, True, works.deployment, _MANY_DEPLOYMENTS),
    Episode(0.64, True, large_operations.discarded_change),
    Episode(0.68, False, works.intrusion),
    Episode(0.72, True, works.replace_broker),
    Episode(0.80, True, security.rotate_all),
    Episode(0.84, False, failures.broker_flaps),
    Episode(0.86, True, _KEEP_ELR),
    Episode(0.88, True, works.deployment, _MANY_DEPLOYMENTS),
)

RECURRING: Final[tuple[tuple[int, int, Happening], ...]] = (
    (DAY_MS // 2, 2 * DAY_MS, brokers.hiccup),
    (DAY_MS, 2 * DAY_MS, brokers.restart_one),
    (2 * DAY_MS, 4 * DAY_MS, works.fail_over),
)
"""What comes again after so many ms at least and at most, unless an episode is under way."""

_WEIGHTS: Final[tuple[tuple[int, Callable[[Stage], None]], ...]] = (
    (48, replicas.wobble),
    (5, topics.create),
    (2, topics.delete),
    (1, topics.grow),
    (9, topics.configure),
    (5, replicas.reassign),
    (3, replicas.assign_directories),
    (4, security.grant),
    (2, security.revoke),
    (2, security.set_password),
    (1, security.remove_password),
    (3, security.token),
    (3, security.quota),
    (3, security.configure_broker),
    (5, security.producer_ids),
    (4, coordinating.change),
)
BUSINESS: Final = tuple(happens for weight, happens in _WEIGHTS for _ in range(weight))
"""What people and services do between episodes, each as often as it is likely."""
