"""Where the voters of a set listen: as the log says, or as this node is configured.

Rule: an address in an entry of the log comes first, since voters move by such entries (ADR 0081). A
set that no entry names, as the one of the first start, has the configured addresses.

Every commit and every answer to a broker asks for these, so the newest answers are kept.
"""

from collections.abc import Iterable
from functools import lru_cache

from quorum.api import Voter
from quorum.membership.voter_history import VotersAt
from runtime.links.interface import Peer


@lru_cache(maxsize=16)
def addressed(at: VotersAt, configured: tuple[Peer, ...]) -> tuple[Voter, ...]:
    """Return the voters of a set with their addresses; an empty host where none is known."""
    peers = {peer.node_id: peer for peer in configured}
    found = []
    for voter in at.voters:
        peer = peers.get(voter.node_id)
        if peer is not None and not (at.named and voter.host):
            voter = Voter(voter.node_id, voter.directory_id, peer.host, peer.port)  # noqa: PLW2901
        found.append(voter)
    return tuple(found)


def moved(new: Iterable[Voter], before: Iterable[Voter]) -> set[int]:
    """Return the node ids of the voters in both sets whose address differs."""
    places = {(voter.node_id, voter.directory_id): (voter.host, voter.port) for voter in before}
    return {
        voter.node_id
        for voter in new
        if places.get((voter.node_id, voter.directory_id), (voter.host, voter.port))
        != (voter.host, voter.port)
    }


@lru_cache(maxsize=16)
def moved_from(at: VotersAt, configured: tuple[Peer, ...]) -> frozenset[int]:
    """Return the node ids of the voters that listen elsewhere than this node is configured."""
    by_configuration = addressed(at._replace(named=False), configured)
    return frozenset(moved(addressed(at, configured), by_configuration))
