"""States of a cluster's disks that the tests bring about: full of topics, damaged, wiped."""

import msgspec

from runtime.simulated.platter import Platter
from snapshots.store import list_checkpoints

SMALL = {"ledger_segment_bytes": 4096, "catch_up_chunk_bytes": 1000}
"""Several segments, and several pieces of each, after a few topics."""


def fill(cluster, topics=20, partitions=5, start=0):
    """Create topics `topic-0000`, `topic-0001`, ...; `start` is the first number."""
    for number in range(start, start + topics):
        cluster.create_topic(f"topic-{number:04d}", partitions=partitions, factor=1)


def checkpoint(cluster, node_id):
    """Write a checkpoint on a node; its journal is cut there. Returns the checkpoint's id."""
    written = []
    controller = cluster.controllers[node_id]
    cluster.processes[node_id].run(lambda: written.append(controller.write_checkpoint()))
    assert written == [True]
    cluster.run(1.0)
    return list_checkpoints(cluster.shared.disks[node_id])[-1]


def leave_behind(cluster, topics):
    """Cut node 3 off. The others go on, and node 1 writes a checkpoint."""
    cluster.shared.cut(3)
    fill(cluster, topics, start=10)
    checkpoint(cluster, 1)


def forget_journal(cluster):
    """Cut every journal at the leader's mark. A node that lacks older entries must catch up."""
    cluster.shared.compacted = cluster.shared.manifests[cluster.shared.leader].index


def wipe(cluster, node_id):
    """Give a node an empty disk."""
    cluster.platters[node_id] = Platter(cluster.world.random(f"another-{node_id}"))
    cluster.shared.manifests.pop(node_id, None)


def damage(cluster, node_id, which, position=2500):
    """Flip a bit of a segment; returns the segment's file name."""
    name = sorted(n for n in cluster.platters[node_id].names if n.startswith("log/"))[which]
    inode = cluster.platters[node_id].names[name]
    inode.content[min(position, len(inode.content) - 10)] ^= 1
    return name


def corrupt(cluster, node_id):
    """Change a node's image in memory, so that it is not what the log says."""
    applier = cluster.controllers[node_id]._replica.applier
    wrong = applier.image.state_hash.plus(1, 0)
    applier.image = msgspec.structs.replace(applier.image, state_hash=wrong)
    if (pending := applier.pending) is not None:
        wrong = pending.settled().state_hash.plus(1, 0)
        pending._image = msgspec.structs.replace(pending.settled(), state_hash=wrong)
