"""A small cluster whose nodes append to their own files, to test faults of disks and folders."""

from collections.abc import Sequence

from runtime.simulated.disk import SimulatedDisk
from runtime.simulated.fault_schedules import FaultSchedule
from runtime.simulated.host import SimulatedHost
from runtime.simulated.nemesis import Nemesis
from runtime.simulated.network import SimulatedNetwork
from runtime.simulated.process import SimulatedProcess
from runtime.simulated.world import World

DEEP = "log/deep"
SHALLOW = "log/shallow"
OWNER = "journal/owner"


class Folders:
    """Also its own ward."""

    def __init__(self, seed: int, size: int = 5) -> None:
        self.world = World(seed)
        self.network = SimulatedNetwork(self.world)
        self.hosts = {n: SimulatedHost(self.world, self.network, n) for n in range(1, size + 1)}
        self.refused: list[int] = []
        self.failures: list[int | None] = []
        """Errno of writes that failed, in order."""
        self.forgetful: list[int] = []
        self.covered = True
        self.bound = 1 << 30
        self.busy: dict[int, list[str]] = {}
        for node_id in self.hosts:
            self.start(node_id)
        self.world.run_until(1)

    def start(self, node_id: int) -> None:
        process = self.hosts[node_id].boot()
        process.run(lambda: self._begin(node_id, process))

    def _begin(self, node_id: int, process: SimulatedProcess) -> None:
        disk = self.hosts[node_id].disk()
        try:
            whose = disk.read(OWNER) if disk.exists(OWNER) else b""
            if whose not in (b"", b"%d" % node_id):
                self.refused.append(node_id)
                process.kill()
                return
            disk.make_folder("journal")
            disk.make_folder("log")
            disk.replace(OWNER, b"%d" % node_id)
            for name in (DEEP, SHALLOW):
                disk.open(name)
            disk.sync_folder("log")
            self._tick(node_id, process, disk)
        except OSError as error:
            self.failures.append(error.errno)
            process.kill()

    def _tick(self, node_id: int, process: SimulatedProcess, disk: SimulatedDisk) -> None:
        try:
            for name in (DEEP, SHALLOW):
                file = disk.open(name)
                file.append(b"%d at %d." % (node_id, self.world.now_us))
                file.sync()
                disk.read(name)
        except OSError as error:
            self.failures.append(error.errno)
        process.clock.call_later(0.05, lambda: self._tick(node_id, process, disk))

    def leader(self) -> int | None:
        return 1

    def reset_link(self, one: int, other: int) -> None:
        """There are no links."""

    def under_way(self, nodes: Sequence[int]) -> list[str]:
        return [what for node_id in nodes for what in self.busy.get(node_id, [])]

    # -- runtime.simulated.damage_faults.FaultAtlas ----------------------------------------

    def open_to_damage(self) -> bool:
        return self.world.now >= 1

    def files(self, node_id: int) -> list[str]:
        names = self.hosts[node_id].platter.names
        return [name for name in (DEEP, SHALLOW) if name in names]

    def seen_below(self, node_id: int, name: str) -> int:
        return self.bound

    def is_deep(self, name: str) -> bool:
        return name == DEEP

    def is_covered(self, node_id: int) -> bool:
        return self.covered

    def forgot(self, node_id: int) -> None:
        self.forgetful.append(node_id)

    def has_begun(self, node_id: int) -> bool:
        return self.hosts[node_id].running

    def changed_hands(self, nodes: Sequence[int]) -> None:
        """Refusals are seen by `refused`."""


def nemesis_of(cluster: Folders, kind: str, length_s: float = 0.5) -> Nemesis:
    """Return a nemesis that strikes by hand, with one kind of fault."""
    one = FaultSchedule({kind: 1.0}, gap_s=(50.0, 60.0), length_s=(length_s, length_s))
    nemesis = Nemesis(cluster, one, cluster.under_way, cluster, ("jump",))
    nemesis.start()
    return nemesis
