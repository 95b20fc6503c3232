"""Seeds of the kind `voters`: the voters change under every fault, and folders are lost.

Rule: an administrator takes a quorum of five nodes from one voter to three, to five, and back, and
round again. It asks whichever node leads, and removes and adds at random; a leader that shall go is
asked to resign first. Now and then it wipes a voter's folder: only while all nodes run and agree
on a committed set of at least three without a lost directory, as no quorum survives more. A wiped
voter is removed first, and its new directory may be added again.

In seeds of the kind `addresses` it also moves voters to other addresses. A voter's process ends and
starts again at its new address once a leader says that the move is committed. No configuration ever
names that address. A node that votes no more starts again at the configured one, as the other nodes
look for it there.

Beside the invariants of `quorum_invariants` it checks those of `voter_checks` after every event.
"""

import random as random_module
from collections import Counter
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from quorum.api import NoRoomError, NotLeaderError, QuorumStoppedError, Voter
from quorum.api import VoterChangeRefusedError as RefusedError
from runtime.simulated.fault_schedules import ALL_BUT_DAMAGE, FaultSchedule, draw_fault_schedule
from runtime.simulated.world import US
from tests.simulation import drawn
from tests.simulation.voter_checks import VoterChecks, may_wipe

if TYPE_CHECKING:
    from runtime.simulated.world import Process
    from tests.simulation.quorum_cluster import Owner, QuorumCluster, Shape

NODES = 5
SIZES = (3, 5, 3, 1)
"""How many voters there shall be, one after another, and from the beginning again."""


def draw(seed: int, shape: "Shape", kind: str = "voters") -> FaultSchedule:
    """Draw a quorum, its load and its faults."""
    dice = drawn.dice_of(seed, kind)
    drawn.draw_quorum(dice, shape, (NODES,))
    shape.faults_s = dice.uniform(6.0, 14.0)
    shape.first_voters = dice.choice(((1,), (1,), (1, 2, 3)))
    return draw_fault_schedule(dice, ALL_BUT_DAMAGE)


class VoterAdministrator:
    """Changes the voters of one run."""

    def __init__(self, cluster: "QuorumCluster", seed: int, *, moves: bool = False) -> None:
        self.cluster = cluster
        self.dice: Random = random_module.Random(f"administrator/{seed}")
        self.facts: Counter[str] = Counter()
        self._place = 0
        self._moves = moves
        self._wiped: set[bytes] = set()
        """The directories that are gone for good."""
        self._checks = VoterChecks(cluster.world, self.facts)
        cluster.world.after_event(self.after_event)

    def start(self) -> None:
        """Go on until the cluster is busy no more."""
        if self.cluster.busy:
            self._act()
            delay = self.dice.expovariate(4.0)
            self.cluster.world.schedule(int(delay * US), self.start, None, "administrator")

    def _act(self) -> None:
        leader = self.cluster.serving()
        if leader is None:
            return
        owner = self.cluster.owners[leader]
        voters = owner.quorum.voters()
        if self._moves and (self._restarts_moved(owner) or self.dice.random() < 0.25):
            self._move(owner, voters, self.dice.choice(voters))
            return
        lost = [voter for voter in voters if voter.directory_id in self._wiped]
        if lost:
            self._remove(owner, voters, lost[0])
            return
        if len(voters) == SIZES[self._place]:
            self._place = (self._place + 1) % len(SIZES)
            if self.dice.random() < 0.6 and self._may_wipe():
                self._wipe(self.dice.choice(voters))
                return
        if len(voters) < SIZES[self._place]:
            self._add(owner, voters)
        elif len(voters) > SIZES[self._place]:
            self._remove(owner, voters, self.dice.choice(voters))

    def _add(self, owner: "Owner", voters: tuple[Voter, ...]) -> None:
        known = {voter.node_id for voter in voters}
        choice = [item for item in self.cluster.running() if item[0] not in known]
        if choice:
            node_id, other = self.dice.choice(choice)
            directory_id = other.quorum.context.journal.directory_id
            peer = self.cluster.peers[node_id - 1]
            self._ask(owner, (*voters, Voter(node_id, directory_id, peer.host, peer.port)), "added")

    def _remove(self, owner: "Owner", voters: tuple[Voter, ...], voter: Voter) -> None:
        if voter.node_id == owner.node_id:
            self.facts["resignations asked for"] += 1
            owner.process.schedule(
                0, partial(owner.quorum.resign, "it shall be removed"), "resignation"
            )
        else:
            left = tuple(other for other in voters if other != voter)
            self._ask(owner, left, "removed")

    def _move(self, owner: "Owner", voters: tuple[Voter, ...], voter: Voter) -> None:
        place = Voter(voter.node_id, voter.directory_id, voter.host, voter.port + NODES)
        moved = tuple(place if other is voter else other for other in voters)
        self._ask(owner, moved, "moved")

    def _restarts_moved(self, owner: "Owner") -> bool:
        """Let a node listen where the committed set says; True if one had to be restarted."""
        said = owner.quorum.voter_set()
        if not said.settled:
            return False
        places = {peer.node_id: (peer.host, peer.port) for peer in self.cluster.peers}
        configured = dict(places)
        places |= {voter.node_id: (voter.host, voter.port) for voter in said.voters}
        for node_id, place in places.items():
            host = self.cluster.hosts[node_id]
            if (host.address or configured[node_id]) != place:
                self.facts["moved nodes restarted"] += 1
                host.address = place
                host.kill()
                self.cluster.start(node_id)
                return True
        return False

    def _ask(self, owner: "Owner", voters: tuple[Voter, ...], what: str) -> None:
        # Scheduled, not run: what is sent to a frozen process waits for it.
        owner.process.schedule(0, partial(self._change, owner, voters, what), "change of voters")

    def _change(self, owner: "Owner", voters: tuple[Voter, ...], what: str) -> None:
        proposers = self.cluster.proposers
        payload = (proposers.next + 1).to_bytes(8, "big") + what.encode()
        try:
            owner.quorum.change_voters(voters, payload)
        except (RefusedError, NoRoomError, NotLeaderError, QuorumStoppedError):
            self.facts["changes refused"] += 1
            return
        proposers.next += 1
        proposers.counts.proposed += 1
        proposers.waiting.setdefault(id(owner), {})[payload] = None
        self.facts[f"voters {what}"] += 1

    # Folders.

    def _may_wipe(self) -> bool:
        return may_wipe([owner.quorum.context for _, owner in self.cluster.running()], NODES)

    def _wipe(self, voter: Voter) -> None:
        host = self.cluster.hosts[voter.node_id]
        self.facts["folders wiped"] += 1
        self._wiped.add(voter.directory_id)
        host.lose_power()
        host.platter.wipe()
        self.cluster.invariants.forgot(voter.node_id)
        self.cluster.start(voter.node_id)

    # What must hold.

    def after_event(self, process: "Process | None") -> None:
        owner = None if process is None else self.cluster.owners.get(process.node_id)
        if process is not None and process.alive and owner is not None:
            self._checks.look(process.node_id, getattr(owner.quorum, "context", None))
