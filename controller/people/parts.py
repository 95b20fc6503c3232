"""The parts of this room, wired."""

from collections.abc import Callable

from controller.config import ControllerConfig
from controller.leader.parts import LeaderParts
from controller.people.door import PeopleDoor
from controller.people.giving import Giving
from controller.replica.parts import ReplicaParts
from runtime.clock import Clock


def people_door(
    config: ControllerConfig,
    clock: Clock,
    replica: ReplicaParts,
    leader: LeaderParts,
    draw: Callable[[int], bytes],
) -> PeopleDoor:
    """Return what puts pseudonyms into the requests of one controller."""
    giving = Giving(
        leader.covering,
        config.cluster_key,
        clock,
        leader.proposer,
        leader.own_provenance,
        lambda: replica.image,
        draw,
    )
    return PeopleDoor(giving, clock, leader.changes.asks_for)
