"""An hour of load without faults: there is one election, and no broker is fenced.

    python -m tests.simulation.calm [--seconds 3600] [--changes 20] [--seed 1] [--record FOLDER]

The disks are slow (2 to 20 ms a sync, 120 ms now and then), to provoke needless elections and
fencings.
"""

import argparse
import sys
import time
from pathlib import Path

from runtime.simulated.disk_faults import DiskProfile
from tests.evidence.pieces import write_piece
from tests.simulation.cluster import Cluster
from tests.simulation.cluster_shape import Shape

BUSY_DISK = DiskProfile(2_000, 20_000)


def run_calm(seed: int, seconds: float, changes_per_s: float) -> dict[str, int]:
    """Run a cluster in peace and count what should not happen."""
    shape = Shape(
        changes_per_s=changes_per_s,
        topics_max=500,  # a state that does not grow: each read lists it, each checkpoint writes it
        checkpoint_bytes=400_000,
        tail_bytes=200_000,
        segment_bytes=400_000,
    )
    cluster = Cluster(seed, shape)
    cluster.broker_faults.none()
    for host in cluster.hosts.values():
        host.faults.set_profile(BUSY_DISK)
    cluster.start_all()
    cluster.world.run_for(5.0)
    leader = cluster.leader()
    assert leader is not None, "no leader after five seconds of peace"
    epoch = cluster.controllers[leader].quorum.leader_and_epoch().epoch
    cluster.world.run_for(seconds)
    now = cluster.controllers[leader].quorum.leader_and_epoch()
    image = cluster.controllers[leader].image
    return {
        "elections": now.epoch - epoch + (now.leader != leader),
        "fenced": sum(broker.fenced for broker in image.cluster.brokers.values()),
        "registrations": sum(host.incarnations - 1 for host in cluster.broker_hosts.values()),
        "acknowledged": cluster.admins.counts.acknowledged,
        "reads": cluster.admins.counts.reads,
        "records": image.offset,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="An hour of load without faults, simulated.")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--changes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", type=Path, help="folder for the piece of evidence")
    given = parser.parse_args()
    began = time.monotonic()
    found = run_calm(given.seed, given.seconds, given.changes)
    took_s = time.monotonic() - began
    print(f"{given.seconds:.0f} simulated s in {took_s:.0f} s: {found}")
    if given.record is not None:
        write_piece(given.record, "calm", {**found, "simulated_s": given.seconds}, took_s)
    return 1 if found["elections"] or found["fenced"] or found["registrations"] else 0


if __name__ == "__main__":
    sys.exit(main())
