"""The metrics of a controller's process: quorum, links, HTTP server, loop.

Rule: each part counts its own events; this module only reads the counts when they are scraped.
"""

from collections import Counter
from collections.abc import Callable, Mapping

from quorum.api import Quorum, QuorumStatus, ReplicaState
from runtime.metrics import Registry
from runtime.sockets.admission import Admission
from runtime.sockets.byte_budget import ByteBudget
from runtime.sockets.refusals import Refusals


def declare(
    registry: Registry,
    quorum: Callable[[], Quorum],
    links: Counter[str],
    http: Counter[str],
) -> None:
    """Declare the figures of one process."""
    registry.read_counter(
        "logberg_links_events_total",
        "Links between controllers: dials, frames, ends, refusals",
        lambda: _by_name(links),
        ("event",),
    )
    registry.read_counter(
        "logberg_http_events_total",
        "HTTP shell: requests, answers by status, refusals by code, callers that left",
        lambda: _by_name(http),
        ("event",),
    )
    _declare_quorum(registry, lambda: quorum().status())
    _declare_members(registry, quorum)


def declare_doors(
    registry: Registry, doors: Mapping[str, Admission], budget: ByteBudget, refusals: Refusals
) -> None:
    """Declare the figures of the ports: connections by door, the budget of bytes, refusals."""

    def by_door(read: Callable[[Admission], int]) -> Callable[[], Mapping[tuple[str, ...], float]]:
        return lambda: {(name,): float(read(door)) for name, door in doors.items()}

    registry.read_gauge(
        "logberg_connections",
        "Open connections; on the quorum port those that have not greeted",
        by_door(lambda door: door.inside),
        ("door",),
    )
    registry.read_gauge(
        "logberg_connections_unknown",
        "Connections that have sent something and whose caller is not known yet",
        by_door(lambda door: door.unknown),
        ("door",),
    )
    registry.read_counter(
        "logberg_connections_turned_away_total",
        "Connections that were closed at once because no place was left",
        by_door(lambda door: door.turned_away),
        ("door",),
    )
    registry.read_counter(
        "logberg_connections_displaced_total",
        "Connections that were closed to make room for newer ones",
        by_door(lambda door: door.ended),
        ("door",),
    )
    registry.read_gauge(
        "logberg_bodies_and_handshakes_bytes",
        "Memory for bodies that are being read and for connections whose caller is not known yet",
        lambda: budget.used,
    )
    registry.read_counter(
        "logberg_refused_attempts_total",
        "Connections and requests that were refused because of their caller, by log event",
        lambda: _by_name(refusals.counters),
        ("event",),
    )


def _declare_quorum(registry: Registry, status: Callable[[], QuorumStatus]) -> None:
    gauge = registry.read_gauge
    gauge("logberg_quorum_epoch", "Epoch; it grows with each election", lambda: status().epoch)
    gauge(
        "logberg_quorum_leader",
        "Node id of the leader, -1 while none is known",
        lambda: _or_none(status().leader),
    )
    gauge("logberg_quorum_commit_index", "Entries committed", lambda: status().commit_index)
    gauge("logberg_quorum_last_index", "Entries in the journal", lambda: status().last_index)
    gauge("logberg_quorum_durable_index", "Entries synced here", lambda: status().durable_index)
    gauge("logberg_quorum_journal_bytes", "Size of the journal", lambda: status().journal_bytes)
    gauge(
        "logberg_quorum_journal_damaged",
        "1 while the journal is damaged: the node doesn't vote",
        lambda: status().role == "damaged",
    )
    registry.read_counter(
        "logberg_quorum_journal_repaired_total",
        "Times that the journal or the manifest was repaired since the start",
        lambda: len(status().repairs),
    )
    registry.read_counter(
        "logberg_quorum_refused_total",
        "Frames and greetings of other controllers that were refused, by reason",
        lambda: {(reason,): float(count) for reason, count in status().refused},
        ("reason",),
    )


def _declare_members(registry: Registry, quorum: Callable[[], Quorum]) -> None:
    gauge = registry.read_gauge
    gauge(
        "logberg_quorum_replica_lag_entries",
        "Entries that a replica is not known to have synced; the leader's knowledge",
        lambda: _lags(quorum().status()),
        ("node_id", "role"),
    )
    gauge(
        "logberg_quorum_replica_heard_seconds",
        "Seconds since a replica last answered the leader; the leader's knowledge",
        lambda: _heard(quorum().status()),
        ("node_id", "role"),
    )
    gauge(
        "logberg_quorum_voters",
        "Controllers that vote; 0 where the node does not lead",
        lambda: _voters(quorum()),
    )
    gauge(
        "logberg_quorum_observers",
        "Controllers that follow the leader and don't vote; 0 where the node does not lead",
        lambda: sum(not replica.is_voter for replica in quorum().status().replicas),
    )


def _voters(quorum: Quorum) -> int:
    status = quorum.status()
    return len(quorum.voters()) if status.leader == status.node_id else 0


def _lags(status: QuorumStatus) -> Mapping[tuple[str, ...], float]:
    return {
        _labels(replica): max(0, status.last_index - replica.match_index)
        for replica in status.replicas
        if replica.node_id != status.node_id
    }


def _heard(status: QuorumStatus) -> Mapping[tuple[str, ...], float]:
    return {
        _labels(replica): replica.last_contact_s
        for replica in status.replicas
        if replica.node_id != status.node_id and replica.last_contact_s >= 0
    }


def _labels(replica: ReplicaState) -> tuple[str, str]:
    return str(replica.node_id), "voter" if replica.is_voter else "observer"


def _or_none(leader: int | None) -> int:
    return -1 if leader is None else leader


def _by_name(counters: Counter[str]) -> Mapping[tuple[str, ...], float]:
    return {(name,): float(count) for name, count in counters.items()}
