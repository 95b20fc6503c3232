"""The base of the scenarios of a simulated quorum, of its damage, and of folders put back.

Rule: a scenario begins with sound voters under load and ends when all of them hold the same. If an
acknowledged entry is in no leader's log, the run fails (I5). So a scenario that ends shows that
nothing was lost.
"""

from typing import Any

from quorum.journal.frames import JournalFrameKind, find_frames
from quorum.journal.identity import read_opening
from runtime.simulated.platter import Platter
from tests.simulation.quorum_cluster import QuorumCluster, Shape


def cluster(seed: int = 5, nodes: int = 3, **shape: Any) -> QuorumCluster:
    fields: dict[str, Any] = {"nodes": nodes, "proposals_per_s": 30.0, "reads_per_s": 5.0} | shape
    return under_way(QuorumCluster(seed, Shape(**fields)))


def under_way(made: QuorumCluster, seconds: float = 2) -> QuorumCluster:
    """Start all, and let a leader serve proposals for a while."""
    made.start_all()
    assert made.world.run_for(3, lambda: made.serving() is not None)
    made.proposers.start()
    made.world.run_for(seconds)
    return made


def leader_of(made: QuorumCluster) -> int:
    leader = made.serving()
    assert leader is not None
    return leader


def followers_of(made: QuorumCluster) -> list[int]:
    return [n for n in made.hosts if n != leader_of(made)]


def role(made: QuorumCluster, node_id: int) -> str:
    return made.owners[node_id].quorum.status().role


def note(made: QuorumCluster, node_id: int) -> str:
    return made.owners[node_id].quorum.status().note


def settles(made: QuorumCluster, seconds: float = 20) -> None:
    """At rest all nodes hold the same, and the leader holds everything ever acknowledged."""
    made.busy = False
    state = {n: (o.quorum.status().role, o.last_delivered) for n, o in made.running()}
    assert made.world.run_for(seconds, made.caught_up), state


def is_voter_again(made: QuorumCluster, node_id: int, seconds: float = 6) -> None:
    assert made.world.run_for(seconds, lambda: role(made, node_id) in ("follower", "leader"))


def frames(platter: Platter, kind: JournalFrameKind) -> list[tuple[str, int]]:
    """Where the bodies of a kind of frame stand: file and offset."""
    found = []
    for name in sorted(n for n in platter.names if n.endswith(".wal")):
        data = bytes(platter.names[name].content)
        opening = read_opening(name, data)
        assert opening is not None
        seed = opening.identity.seed(opening.sequence)
        found += [(name, f.offset + 36) for f in find_frames(data, 0, seed) if f.kind == kind]
    return found


def flip(platter: Platter, kind: JournalFrameKind = JournalFrameKind.ENTRY) -> None:
    """Damage the frame of a kind that stands in the middle."""
    where = frames(platter, kind)
    platter.flip_bit(*where[len(where) // 2])


def stop_all(made: QuorumCluster) -> None:
    made.world.run_for(0.5)
    for host in made.hosts.values():
        host.kill()
