"""Where this node dials each of its peers.

Rule: a peer may have several addresses: in a set of voters that we heard of, in our newest set, and
in our configuration. They are tried in this order, each for `_TRIES_E`, until the peer is linked.
So a voter that moved is found, also by a node whose file or log names its old address, and an
address that the log names by mistake doesn't keep a configured one from working. An open link stays
as it is. Whoever was a voter once is dialled until the end: it has to hear of its removal.
"""

from typing import Final

from quorum.guard.context import NodeContext
from runtime.links.interface import Peer

_TRIES_E: Final = 4
"""Election timeouts: twice as long as a dial that nobody answers."""


class Dialling:
    """The addresses that are dialled now."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._dialled = {peer.node_id: peer for peer in context.config.peers}
        self._since: dict[int, float] = {}
        """Since when its present address has been tried, by node id; absent: it was linked since.
        """

    def begin(self) -> None:
        """Say whom to dial, before the links start."""
        self._context.links.set_peers(tuple(self._dialled.values()))
        self.look()

    def look(self) -> None:
        """Choose again. Called on every tick."""
        before = len(self._dialled)
        changed = [n for n, choice in self._choices().items() if self._choose(n, choice)]
        if changed or len(self._dialled) > before:
            self._context.links.set_peers(tuple(self._dialled.values()))

    def _choices(self) -> dict[int, list[Peer]]:
        """The addresses of each peer, the best first."""
        context = self._context
        newest, configured = context.voters.newest, context.config.peers
        known = {peer.node_id for peer in configured}
        said = [*context.heard_voters.voters]
        said += [v for v in newest.voters if newest.named or v.node_id not in known]
        places = [Peer(v.node_id, v.host, v.port) for v in said if v.host]
        found: dict[int, list[Peer]] = {}
        for peer in (*places, *configured):
            choice = found.setdefault(peer.node_id, [])
            if peer not in choice:
                choice.append(peer)
        found.pop(context.config.node_id, None)
        return found

    def _choose(self, node_id: int, choice: list[Peer]) -> bool:
        """Dial a peer at one of its addresses; True if that is another one than before."""
        now, at = self._context.now, self._dialled.get(node_id)
        replica = self._context.replicas.get(node_id)
        if replica is not None and replica.linked and at is not None:
            self._since.pop(node_id, None)
            return False
        since = self._since.get(node_id)
        if since is None or at not in choice:
            chosen = choice[0]
        elif now - since < _TRIES_E * self._context.config.election_timeout_s:
            return False
        else:
            chosen = choice[(choice.index(at) + 1) % len(choice)]
        self._since[node_id] = now
        self._dialled[node_id] = chosen
        return chosen != at
