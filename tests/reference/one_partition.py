"""A partition, and what every change of it goes through: reassignments that end, elections.

Written from Kafka's rules of replication, sections 1, 4, 7 and 9.

Rule: this module knows nothing of the product. A function gets a partition and returns another one.
"""

from dataclasses import dataclass, replace

NOBODY = -1
Ids = tuple[int, ...]


@dataclass(frozen=True)
class Replicas:
    """A partition (section 1)."""

    replicas: Ids
    isr: Ids
    leader: int
    elr: Ids = ()
    last_known: Ids = ()
    removing: Ids = ()
    adding: Ids = ()
    recovering: bool = False
    leader_epoch: int = 0
    epoch: int = 0
    directories: tuple[str, ...] = ()
    """One for each replica."""


def completed(want: Replicas) -> Replicas:
    """Finish a reassignment once all that it adds is in sync (section 7, Kafka 4.3)."""
    if not want.removing and not want.adding:
        return want
    isr = tuple(broker for broker in want.isr if broker not in want.removing)
    stay = tuple(broker for broker in want.replicas if broker not in want.removing)
    if not isr or not stay or not set(want.adding) <= set(isr):
        return want
    if len(want.adding) < len(want.removing) and not set(stay) <= set(isr):
        return want
    return replace(want, isr=isr, replicas=stay, removing=(), adding=())


def elected(want: Replicas, lives: set[int], mode: str, *, elr_on: bool, least: int) -> Replicas:
    """Choose a leader (section 4); `least` in sync are enough to take writes."""
    may = want.isr or (want.elr if elr_on else ())
    order = (want.leader, *want.replicas)
    if mode == "preferred":
        order = (want.replicas[0], *order)
    for broker in order:
        if broker in lives and broker in may and broker in want.replicas:
            if broker in want.isr:
                return replace(want, leader=broker)
            rest = tuple(other for other in want.elr if other != broker and least > 1)
            return replace(want, leader=broker, isr=(broker,), elr=rest)
    candidates: Ids = ()
    if elr_on and not want.isr and not want.elr and len(want.last_known) == 1:
        candidates = want.last_known
    if mode == "unclean":
        candidates += want.replicas
    for broker in candidates:
        if broker in lives and broker in want.replicas:
            return replace(
                want, leader=broker, isr=(broker,), elr=(), last_known=(), recovering=True
            )
    return replace(want, leader=NOBODY)


def emptied(each: Replicas) -> Replicas:
    """Forget who is eligible."""
    if not each.elr and not each.last_known:
        return each
    return replace(each, elr=(), last_known=(), epoch=each.epoch + 1)
