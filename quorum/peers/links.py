"""Links and voters: who is linked, as what, and when the voters become known.

Rule: what a greeting said is what a link is; a peer that turns out to be formed otherwise is
treated as not linked.
"""

from collections.abc import Callable

from quorum.api import Voter
from quorum.guard.elections import Elections
from quorum.guard.inside import Inside
from quorum.guard.memory import Memory
from quorum.guard.replicas import Replica
from quorum.guard.replication import Replication
from quorum.membership.greeting import Greeting, judge_greeting
from quorum.raft.core import Role
from quorum.wire.codec import BadBytesError
from quorum.wire.frames import Kind
from runtime.links import LinkEnd


class Membership:
    """Keeps replicas in step with links and formation."""

    def __init__(
        self,
        inside: Inside,
        elections: Elections,
        replication: Replication,
        memory: Memory,
        on_voters_known: Callable[[], None],
    ) -> None:
        self._inside = inside
        self._elections = elections
        self._replication = replication
        self._memory = memory
        self._on_voters_known = on_voters_known
        self._greetings: dict[int, Greeting] = {}

    def judge(self, dialled: int | None, data: bytes, certified: str | None) -> int | str:
        """Judge a greeting; see `runtime.links.LinkHandler`."""
        inside = self._inside
        verdict = judge_greeting(
            inside.config, inside.journal, inside.formation, dialled, data, certified
        )
        if isinstance(verdict, str):
            inside.count("greeting_refused")
            return verdict
        self._greetings[verdict.node_id] = verdict
        return verdict.node_id

    def on_link_up(self, node_id: int) -> None:
        """Begin to work with a peer."""
        inside = self._inside
        greeting = self._greetings[node_id]
        replica = inside.replicas.get(node_id)
        if replica is None or replica.node.directory_id != greeting.directory_id:
            is_voter = inside.formation.votes(node_id, greeting.directory_id)
            replica = Replica(node_id, greeting.directory_id, is_voter=is_voter)
            inside.replicas.put(replica)
        replica.linked = True
        inside.log.info("peer_linked", node=node_id, voter=replica.is_voter)
        self._memory.on_link_up(replica)
        if greeting.empty:
            inside.formation.peer_is_empty(node_id, greeting.directory_id)
        if self._learn(greeting.formation) or inside.formation.form():
            self._voters_known()
        elif inside.formation.announced:
            self._announce(replica)
        self._elections.on_link_up(node_id)
        if inside.core is not None and inside.core.role is Role.LEADER and not replica.connected:
            self._replication.link_up(replica)

    def on_link_down(self, node_id: int, end: LinkEnd) -> None:
        """A link ended, or a redial failed."""
        inside = self._inside
        replica = inside.replicas.get(node_id)
        if replica is not None and replica.linked:
            replica.linked = False
            inside.log.info("peer_unlinked", node=node_id, how=end.value)
            if inside.core is not None:
                self._replication.link_down(replica)
        inside.formation.peer_is_gone(node_id)
        self._elections.on_link_down(node_id, end)

    def on_formation(self, replica: Replica, formation: bytes) -> None:
        """A peer says what it wrote."""
        inside = self._inside
        if inside.formation.differs(formation):
            inside.log.error("formation_differs", node=replica.node_id)
            self.on_link_down(replica.node_id, LinkEnd.REJECTED)
        elif self._learn(formation):
            self._voters_known()
        inside.formation.peer_is_gone(replica.node_id)

    def form(self) -> None:
        """Form, if all that is needed is known: at once where there is one controller."""
        if self._inside.formation.form():
            self._voters_known()

    def _learn(self, formation: bytes) -> bool:
        try:
            return self._inside.formation.learn(formation)
        except BadBytesError as error:
            self._inside.log.error("formation_refused", why=str(error))
            return False

    def _voters_known(self) -> None:
        inside = self._inside
        for replica in inside.replicas:
            replica.is_voter = inside.formation.votes(replica.node_id, replica.node.directory_id)
        inside.log.info(
            "voters_known", voters=sorted(inside.formation.pinned), we_vote=inside.formation.we_vote
        )
        if inside.formation.announced:
            for replica in inside.replicas.linked():
                self._announce(replica)
        self._on_voters_known()

    def _announce(self, replica: Replica) -> None:
        inside = self._inside
        announced = inside.formation.announced
        inside.outbox.send(replica.node_id, Kind.FORMATION, inside.term, announced)

    def voters(self) -> tuple[Voter, ...]:
        """The pinned voters, with the addresses that we are configured with."""
        inside = self._inside
        peers = {peer.node_id: peer for peer in inside.config.peers}
        voters = []
        for node_id, directory_id in sorted(inside.formation.pinned.items()):
            peer = peers.get(node_id)
            host, port = (peer.host, peer.port) if peer is not None else ("", 0)
            voters.append(Voter(node_id=node_id, directory_id=directory_id, host=host, port=port))
        return tuple(voters)
