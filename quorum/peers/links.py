"""Keeps the replicas in step with links and formation, and says when the voters are known.

Rule: a link belongs to the node and directory that its greeting named. A peer that later shows
another formation counts as not linked.

The formation is told as soon as it is durable, and then once per election timeout, to every linked
peer that has not shown that its journal holds it. An observer's never does.
"""

from quorum.api import Voter, VoterSet
from quorum.guard.context import NodeContext
from quorum.guard.guard import Guard
from quorum.guard.replicas import PeerReplica
from quorum.membership.greeting import Greeting, judge_greeting
from quorum.membership.voter_addresses import addressed, moved_from
from quorum.membership.voter_history import VotersAt
from quorum.peers.dialling import Dialling
from quorum.peers.format_negotiation import FormatNegotiation
from quorum.raft.core import Role
from quorum.wire.codec import BadBytesError
from quorum.wire.frames import FrameKind
from runtime.links.interface import LinkEnd, LinkHandler


class Membership:
    """The links of this node, and who is on them."""

    def __init__(self, context: NodeContext, guard: Guard, formats: FormatNegotiation) -> None:
        self._context = context
        self._guard = guard
        self._formats = formats
        self._greetings: dict[int, Greeting] = {}
        self._formation_due = -1e9
        self.dialling = Dialling(context)

    def begin(self, handler: LinkHandler) -> None:
        """Begin to dial and to listen. Raises OSError if the port is in use."""
        self.dialling.begin()
        self._context.links.start(handler)

    def judge(self, dialled: int | None, data: bytes, certified: str | None) -> int | str:
        """Judge a greeting; see `runtime.links.interface.LinkHandler`."""
        context = self._context
        verdict = judge_greeting(
            context.config,
            context.journal,
            context.formation,
            dialled,
            data,
            certified,
            context.voters.members.keys() | context.heard_voters.members,
        )
        if isinstance(verdict, str):
            context.count("greeting_refused")
            return verdict
        self._greetings[verdict.node_id] = verdict
        return verdict.node_id

    def on_link_up(self, node_id: int) -> None:
        """Begin to work with a peer whose greeting was accepted."""
        context = self._context
        greeting = self._greetings[node_id]
        replica = context.replicas.get(node_id)
        if replica is None or replica.node.directory_id != greeting.directory_id:
            is_voter = context.voters.votes(node_id, greeting.directory_id)
            replica = PeerReplica(node_id, greeting.directory_id, is_voter=is_voter)
            context.replicas.put(replica)
            context.heard_voters.judge(replica)
        replica.linked = True
        replica.has_formation = bool(greeting.formation)
        context.log.info("peer_linked", node=node_id, voter=replica.is_voter)
        self._formats.on_link_up(replica)
        self._guard.memory.on_link_up(replica)
        if greeting.empty:
            context.formation.peer_is_empty(node_id, greeting.directory_id)
        if self._learn(greeting.formation) or context.formation.form():
            self._voters_known()
        elif context.formation.announced:
            self._announce(replica)
        self._guard.elections.on_link_up(node_id)
        if context.core is not None and context.core.role is Role.LEADER and not replica.connected:
            self._guard.replication.link_up(replica)

    def on_link_down(self, node_id: int, end: LinkEnd) -> None:
        """Note that a link ended, or that a redial failed."""
        context = self._context
        replica = context.replicas.get(node_id)
        if replica is not None and replica.linked:
            replica.linked = False
            context.log.info("peer_unlinked", node=node_id, how=end.value)
            if context.core is not None:
                self._guard.replication.link_down(replica)
        context.formation.peer_is_gone(node_id)
        self._guard.elections.on_link_down(node_id, end)

    def on_formation(self, replica: PeerReplica, formation: bytes) -> None:
        """Take the formation that a peer wrote to its journal."""
        context = self._context
        replica.has_formation = bool(formation)
        if context.formation.differs(formation):
            context.log.error("formation_differs", node=replica.node_id)
            self.on_link_down(replica.node_id, LinkEnd.REJECTED)
        elif self._learn(formation):
            self._voters_known()
        context.formation.peer_is_gone(replica.node_id)

    def form(self) -> None:
        """Form the quorum if possible: at once where only one controller is configured."""
        if self._context.formation.form():
            self._voters_known()

    def _learn(self, formation: bytes) -> bool:
        try:
            return self._context.formation.learn(formation)
        except BadBytesError as error:
            self._context.log.error("formation_refused", why=str(error))
            return False

    def _voters_known(self) -> None:
        context = self._context
        context.voters.formed()
        if context.voters.we_vote and context.formation.is_learned:
            # We were added to the voters, and lost this with the end of our journal.
            context.formation.write()
        for replica in context.replicas:
            replica.is_voter = context.voters.votes(*replica.identity)
        context.log.info(
            "voters_known",
            voters=sorted(context.voters.members),
            we_vote=context.voters.we_vote,
        )
        self._guard.core_callbacks.begin()

    def tell_formation(self) -> None:
        """Tell it to those that may lack it, once per election timeout."""
        context = self._context
        if not context.formation.announced or context.now < self._formation_due:
            return
        self._formation_due = context.now + context.config.election_timeout_s
        for replica in context.replicas.linked():
            if not replica.has_formation:
                self._announce(replica)

    def _announce(self, replica: PeerReplica) -> None:
        context = self._context
        announced = context.formation.announced
        context.outbox.send(replica.node_id, FrameKind.FORMATION, context.term, announced)

    def voters(self) -> tuple[Voter, ...]:
        """Return the voters in force, with their addresses."""
        voters = self._context.voters
        return addressed(voters.newest, self._context.config.peers) if voters.known else ()

    def voter_set(self, *, settled: bool) -> VoterSet:
        """Return the voters in force, and which of them have moved."""
        known, newest = self._context.voters.known, self._context.voters.newest
        moved = moved_from(newest, self._context.config.peers) if known else frozenset()
        return VoterSet(self.voters(), newest.index, settled, newest.named, moved)

    def candidate(self, node_id: int) -> Voter | None:
        """Return the linked node of this id as it would vote; None: none is linked."""
        replica = self._context.replicas.get(node_id)
        if replica is None or not replica.linked:
            return None
        alone = VotersAt(0, (Voter(*replica.identity, host="", port=0),), named=False)
        (found,) = addressed(alone, self._context.config.peers)
        return found

    def voters_at(self, index: int) -> tuple[tuple[Voter, ...], bool]:
        """Return the voters that were in force at an index, and whether an entry named them."""
        voters = self._context.voters
        at = voters.at(index)
        return (
            (addressed(at, self._context.config.peers), at.named) if voters.known else ((), False)
        )
