"""Backups of a simulated cluster while faults strike, and the cluster that is restored from one.

Rule: the product's own parts make, verify and restore backups, on simulated disks. A backup is read
piece by piece while the cluster goes on; so its source is written to, killed and loses power
meanwhile.
"""

from collections.abc import Generator
from contextlib import suppress
from typing import Any

from audit.places.tree_disk import TreeDisk
from ledger.errors import LedgerError
from logberg.backups.backup_format import BackupError
from logberg.backups.making import WantedBackup, backup_steps
from logberg.backups.places import BackupName, DiskPlace
from logberg.backups.reading import BackupFacts, BackupFile, verify_backup
from logberg.backups.restoring import CutPoint, Restored, RestoreOrder, restore_backup
from logberg.backups.sources import FolderSource
from quorum.api import Voter
from runtime.simulated.host import SimulatedHost
from runtime.simulated.platter import Platter
from runtime.simulated.world import WALL_START_MS
from tests.simulation.cluster import ADMIN_HOST, CLUSTER_ID, Cluster
from tests.simulation.cluster_shape import Shape

STORE_HOST = 950
PAUSE_S = 0.05
"""Between two pieces of a backup."""
LATER_S = 600.0
"""A restored cluster begins so much later, by the wall clock, than the one that was backed up."""


class PlatterTree:
    """What is on a platter now, as another process of the machine sees it."""

    def __init__(self, platter: Platter, location: str) -> None:
        self._platter = platter
        self.location = location

    def files(self, folder: str) -> list[str]:
        start = f"{folder}/" if folder else ""
        inside = (name[len(start) :] for name in self._platter.names if name.startswith(start))
        return sorted(name for name in inside if "/" not in name)

    def folders(self, folder: str) -> list[str]:
        start = f"{folder}/" if folder else ""
        inside = (name[len(start) :] for name in self._platter.names if name.startswith(start))
        return sorted({name.partition("/")[0] for name in inside if "/" in name})

    def size(self, path: str) -> int:
        return len(self._content(path))

    def read(self, path: str, position: int = 0, length: int | None = None) -> bytes:
        end = None if length is None else position + length
        return bytes(self._content(path)[position:end])

    def _content(self, path: str) -> bytearray:
        if path not in self._platter.names:
            raise FileNotFoundError(2, "no such file", path)
        return self._platter.names[path].content


class Backups:
    """A place for backups on a machine of its own, and somebody who makes them again and again."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.host = SimulatedHost(cluster.world, cluster.network, STORE_HOST)
        self.host.boot()
        self.place = DiskPlace(self.host.disk(), "store")
        self.dice = cluster.world.random("backups")
        self.made: list[tuple[str, BackupFacts]] = []
        self.refused: list[str] = []

    def start(self) -> None:
        """Begin to make backups, each of a controller that the dice choose."""
        self._go(self._all())

    def _go(self, steps: Generator[None, None, None]) -> None:
        def go() -> None:
            with suppress(StopIteration):
                next(steps)
                self._cluster.later(PAUSE_S, go)

        go()

    def _all(self) -> Generator[None, None, None]:
        while self._cluster.busy:
            node_id = self.dice.choice(list(self._cluster.hosts))
            try:
                yield from self._one(node_id)
            except (BackupError, LedgerError, OSError) as error:
                # What was unsynced there is gone after a loss of power, and old checkpoints go.
                self.refused.append(str(error))
            yield

    def _one(self, node_id: int) -> Generator[None, None, None]:
        platter = self._cluster.hosts[node_id].platter
        source = FolderSource(TreeDisk(PlatterTree(platter, f"controller-{node_id}")), "a node")
        made_at_ms = WALL_START_MS + int(self._cluster.world.now * 1000)
        name = str(BackupName(made_at_ms, source.end.log_end))
        writer = self.place.create(name)
        steps = backup_steps(source, writer, WantedBackup(made_at_ms, "0.0-test"))
        try:
            while True:
                try:
                    next(steps)
                except StopIteration as end:
                    facts = end.value
                    break
                yield
            writer.close()
        except (BackupError, LedgerError, OSError):
            writer.give_up()
            raise
        assert verify_backup(self.place.open(name), lambda *_: None) == facts
        self.made.append((name, facts))

    def content(self, name: str) -> "HeldBackup":
        """Return a backup as a loss of power leaves it."""
        self.host.lose_power()
        return HeldBackup(bytes(self.host.platter.names[name].content))


class HeldBackup:
    """A backup in memory."""

    location = "a backup"

    def __init__(self, data: bytes) -> None:
        self._data = data

    def size(self) -> int:
        return len(self._data)

    def read(self, position: int, length: int) -> bytes:
        return self._data[position : position + length]


def restored_cluster(
    seed: int, file: BackupFile, shape: Shape, moment: CutPoint | None = None
) -> tuple[Cluster, Restored]:
    """A cluster that has yet to start, on restored folders that have just lost their power."""
    cluster = Cluster(seed, shape)
    dice = cluster.world.random("directories")
    voters = tuple(Voter(n, dice.randbytes(16), f"controller-{n}", 1) for n in cluster.hosts)
    disks: dict[int, Any] = {}
    for n, host in cluster.hosts.items():
        host.boot()
        disks[n] = host.disk()
    found = restore_backup(
        file,
        disks,
        RestoreOrder(
            voters,
            "User:admin",
            "a majority is lost",
            WALL_START_MS + int(LATER_S * 1000),
            bytes(16),
        ),
        cluster_id=CLUSTER_ID,
        segment_bytes=shape.segment_bytes,
        moment=moment or CutPoint(),
        on_progress=lambda *_: None,
    )
    for host in cluster.hosts.values():
        host.lose_power()
    for node_id in (*cluster.hosts, ADMIN_HOST):
        cluster.world.machine(node_id).jump_wall(LATER_S)
    return cluster, found
