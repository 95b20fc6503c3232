"""A voter of the quorum as the log's records name it (KIP-853)."""

from typing import Final

from metadata.records import Voter, VoterEndpoint, VoterKRaftVersions

K_RAFT_VERSION: Final = 1
"""Voters are in the log (KIP-853)."""
QUORUM_ENDPOINT: Final = "QUORUM"
"""The name of the endpoint where a voter listens for the others."""


def voter_record(node_id: int, directory_id: bytes, host: str, port: int) -> Voter:
    """Return a voter whose address is where it listens for the others."""
    endpoint = VoterEndpoint(QUORUM_ENDPOINT, host, port)
    return Voter(node_id, directory_id, (endpoint,), VoterKRaftVersions(0, K_RAFT_VERSION))
