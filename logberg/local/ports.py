"""The ports of a local cluster: a port base, and one port above it for each listener."""

import socket

from logberg.local.cluster_file import LocalClusterError
from runtime.randomness import from_system

DEFAULT_PORT_BASE = 19_000
QUORUM_PORT, HTTP_PORT, AGENT_PORT = 91, 191, 291
"""Added to the port base: 19091…, 19191…, 19291…"""
KAFKA_PORT, KAFKA_BROKER_PORT, KAFKA_SCRAM_PORT = 391, 491, 591
"""The controllers' Kafka listeners, and the two listeners of each of Kafka's brokers."""
CLIENTS_PORT = 691
"""Our agents' listeners for Kafka's clients."""
_PARTS = (
    *(QUORUM_PORT, HTTP_PORT, AGENT_PORT),
    *(KAFKA_PORT, KAFKA_BROKER_PORT, KAFKA_SCRAM_PORT, CLIENTS_PORT),
)


def port_is_free(port: int) -> bool:
    """Whether nothing listens on a loopback port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port_base(first: int = 20_000, last: int = 31_000) -> int:
    """Find a base whose ports are free, below the range that the system hands out.

    The search order is random, so two processes that search at once rarely find the same base.
    """
    bases = list(range(first, last, 10))
    from_system().shuffle(bases)
    for base in bases:
        ports = [base + part + n for part in _PARTS for n in range(9)]
        if all(port_is_free(port) for port in ports):
            return base
    raise LocalClusterError(
        "No free ports between 20000 and 31000; stop a process that uses them and try again."
    )
