"""The guard of one node: makes its parts, each with the parts that it needs.

Rule: the parts are made in this order. Some draw from the node's randomness when they are made, so
another order would be another run of a seed.
"""

from quorum.guard.catch_up import FollowerCatchUp
from quorum.guard.ceiling import Ceiling
from quorum.guard.context import NodeContext
from quorum.guard.core_callbacks import CoreCallbacks
from quorum.guard.delivery import Delivery
from quorum.guard.elections import Elections
from quorum.guard.following import Following
from quorum.guard.freshness import DeliveryFreshness
from quorum.guard.heard_voters import HeardVoters
from quorum.guard.memory import Memory
from quorum.guard.reads import ReadIndexes
from quorum.guard.repair import Repair
from quorum.guard.replication import Replication
from quorum.guard.transfer import Transfer
from quorum.guard.voter_changes import VoterChanges
from quorum.journal.manifest_store import ManifestStore
from quorum.raft.proposals import Proposals


class Guard:
    """The parts of one node's guard."""

    def __init__(self, context: NodeContext, manifests: ManifestStore, resumed_at: int) -> None:
        self.proposals = Proposals()
        self.heard_voters = context.heard_voters = HeardVoters(context)
        self.delivery = Delivery(context, resumed_at)
        self.catch_up = FollowerCatchUp(context, manifests, self.delivery.caught_up)
        self.ceiling = Ceiling(context)
        self.elections = Elections(context)
        self.repair = Repair(context)
        self.memory = Memory(context)
        self.following = Following(context, self.elections, self.catch_up, self.repair, self.memory)
        self.replication = Replication(context)
        self.transfer = Transfer(context, self.elections)
        self.reads = ReadIndexes(context)
        self.freshness = DeliveryFreshness(context, self.delivery)
        self.voter_changes = VoterChanges(
            context,
            elections=self.elections,
            replication=self.replication,
            reads=self.reads,
            freshness=self.freshness,
            transfer=self.transfer,
        )
        self.core_callbacks = CoreCallbacks(
            context,
            manifests,
            elections=self.elections,
            following=self.following,
            replication=self.replication,
            delivery=self.delivery,
            proposals=self.proposals,
            voter_changes=self.voter_changes,
        )
