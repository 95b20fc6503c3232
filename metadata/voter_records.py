"""A voter of the quorum as the log's records name it (KIP-853)."""

from typing import Final

import msgspec

from metadata.records import Voter, VoterEndpoint, VoterKRaftVersions

K_RAFT_VERSION: Final = 1
"""Voters are in the log (KIP-853)."""
QUORUM_ENDPOINT: Final = "QUORUM"
"""The name of the endpoint where a voter listens for the others."""


def voter_record(node_id: int, directory_id: bytes, host: str, port: int) -> Voter:
    """Return a voter whose address is where it listens for the others."""
    endpoint = VoterEndpoint(QUORUM_ENDPOINT, host, port)
    return Voter(node_id, directory_id, (endpoint,), VoterKRaftVersions(0, K_RAFT_VERSION))


def listening_at(voter: Voter, host: str, port: int) -> Voter:
    """Return a voter that listens for the others there; its other endpoints stay."""
    own = VoterEndpoint(QUORUM_ENDPOINT, host, port)
    others = tuple(point for point in voter.endpoints if point.name != QUORUM_ENDPOINT)
    return msgspec.structs.replace(voter, endpoints=(own, *others))
