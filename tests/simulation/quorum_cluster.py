"""A simulated quorum: hosts, nodes, an owner above each, and proposers that remember.

Rule: the owner does with bytes what a controller does. It keeps delivered bytes in a durable file
(so that a mark means something), proposes while it leads, compacts now and then, and in a catch-up
fetches the file of a peer. It reports what it saw to the invariants, which remember it through all
restarts.
"""

import random as random_module
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import structlog

from ledger.errors import LedgerError
from quorum.api import (
    LeaderAndEpoch,
    Mark,
    NoRoomError,
    NotLeaderError,
    PeerFile,
    QuorumStoppedError,
)
from quorum.config import QuorumConfig
from quorum.node import QuorumNode
from quorum.raft.core import Role
from quorum.wire.formats import NEWEST_FORMAT
from runtime.simulated.disk_faults import FAST, DiskProfile
from runtime.simulated.host import SimulatedHost
from runtime.simulated.links import SimulatedLinks
from runtime.simulated.network import SimulatedNetwork
from runtime.simulated.process import SimulatedProcess
from runtime.simulated.world import US, World
from tests.simulation.fault_atlas import REFUSALS, ClusterFaultAtlas
from tests.simulation.quorum_invariants import Invariants

CLUSTER_ID = "simulated-cluster-0001"
STORE = "log/owner"


def quiet_log() -> structlog.typing.FilteringBoundLogger:
    """A logger that drops everything; a run is described by its trace."""
    return structlog.wrap_logger(None, processors=[_drop], wrapper_class=structlog.BoundLogger)


def raising_log() -> structlog.typing.FilteringBoundLogger:
    """A logger that raises each exception that the product notes and outlives, and drops the rest.

    An agent notes what its publishers raise, and some of them are checks.
    """
    return structlog.wrap_logger(None, processors=[_raise], wrapper_class=structlog.BoundLogger)


def raise_it(error: BaseException) -> None:
    """Fail the run for a defect that the product outlives."""
    raise error


def _drop(_logger: object, _name: str, _event: Any) -> Any:
    raise structlog.DropEvent


def _raise(_logger: object, name: str, _event: Any) -> Any:
    error = sys.exception()
    if name == "exception" and error is not None:
        raise error
    raise structlog.DropEvent


@dataclass
class Shape:
    """What kind of cluster, and how much happens in it."""

    nodes: int = 3
    first_voters: tuple[int, ...] = ()
    """Who forms the quorum; empty: all nodes do."""
    faults_s: float = 20.0
    proposals_per_s: float = 60.0
    tail_bytes: int = 20_000
    compact_every: int = 60
    segment_bytes: int = 32_000
    reads_per_s: float = 20.0
    payload_bytes: tuple[int, int] = (8, 200)
    window_bytes: int = 64_000
    disks: tuple[DiskProfile, ...] = (FAST,)
    """Each node draws one of these; it is fast once the faults have ended."""
    formats: tuple[int, ...] = (NEWEST_FORMAT,)
    """Each start of a node draws one of these as the newest wire format that it speaks."""


def incoming(mark: Mark) -> str:
    return f"incoming/{mark.index}"


class Owner:
    """The owner above one node, in one incarnation of its process."""

    def __init__(self, cluster: "QuorumCluster", node_id: int, process: SimulatedProcess) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.process = process
        self.quorum: QuorumNode = None
        self.leads: int | None = None
        self.position = 0
        self.content = bytearray()
        self.catching_up: Mark | None = None
        self.fetched = b""
        self.stopped = ""
        self.last_delivered = 0
        self.compacting = False

    # A durable store: the concatenated payloads, length-prefixed; a mark is its length.

    def open(self, mark: Mark | None) -> None:
        disk = self.cluster.disks[self.node_id]
        disk.make_folder("log")
        self.position = int.from_bytes(mark.data, "big") if mark is not None else 0
        self.last_delivered = mark.index if mark is not None else 1
        stored = disk.read(STORE)[: self.position] if disk.exists(STORE) else b""
        self.file = disk.open(STORE)
        disk.sync_folder("log")
        if mark is not None and disk.exists(incoming(mark)):
            # A catch-up was committed, and what it fetched perhaps not yet safe in its place.
            stored = disk.read(incoming(mark))
            self.file.truncate(0)
            self.file.append(stored)
        elif len(stored) < self.position:
            raise LedgerError(f"{STORE}: bytes below the mark are missing")
        else:
            self.file.truncate(self.position)
        assert len(stored) == self.position, "what was fetched is not what the mark says"
        self.content = bytearray(stored)

    def on_committed(self, index: int, epoch: int, payloads: Sequence[bytes]) -> None:
        self.cluster.invariants.committed(self.node_id, index, epoch, payloads, self)
        self.last_delivered = index
        data = b"".join(len(p).to_bytes(4, "big") + p for p in payloads)
        self.file.append(data)
        self.content += data
        self.cluster.proposers.committed(self, epoch, payloads)
        if index % self.cluster.shape.compact_every == 0:
            self.compact(Mark(index, epoch, len(self.content).to_bytes(8, "big")))

    def compact(self, mark: Mark) -> None:
        if self.compacting:
            return
        self.compacting = True

        def synced(error: OSError | None) -> None:
            if error is not None:
                self.on_stopped(f"the store can't be synced: {error.strerror}")
                return
            self.quorum.compact(mark, done)

        def done(_: bool) -> None:
            self.compacting = False

        self.cluster.disks[self.node_id].sync(self.file, synced)

    def on_leadership(self, epoch: int) -> None:
        self.leads = epoch
        self.cluster.invariants.leadership(self.node_id, epoch)
        self.cluster.leaderships += 1

    def on_leadership_lost(self, epoch: int) -> None:
        assert self.leads == epoch
        self.leads = None

    def on_leader_changed(self, now: LeaderAndEpoch) -> None:
        self.cluster.invariants.leader_seen(self.node_id, now)

    def on_catch_up(self, mark: Mark, source: int) -> None:
        self.catching_up = None
        if len(mark.data) != 8 or int.from_bytes(mark.data, "big") < len(self.content):
            return  # A peer made this mark up. A controller refuses it, too.
        self.catching_up = mark
        self.cluster.installs += 1
        self._fetch(mark, source, b"")

    def _fetch(self, mark: Mark, source: int, got: bytes) -> None:
        if self.catching_up != mark or self.stopped:
            return
        wanted = int.from_bytes(mark.data, "big") - len(got)
        if wanted == 0:
            self._store(mark, got)
            return

        def arrived(piece: PeerFile | None) -> None:
            if self.catching_up != mark or self.stopped:
                return
            if piece is None or not piece.data:
                others = [n for n in self.cluster.hosts if n != self.node_id]
                next_source = others[(others.index(source) + 1) % len(others)]
                self.process.clock.call_later(0.1, lambda: self._fetch(mark, next_source, got))
                return
            self._fetch(mark, source, got + piece.data[:wanted])

        self.quorum.read_file(source, STORE, len(got), min(wanted, 4096), arrived)

    def _store(self, mark: Mark, content: bytes) -> None:
        """As a controller does: beside, synced; moved into place once installed."""
        disk = self.cluster.disks[self.node_id]
        disk.make_folder("incoming")
        disk.replace(incoming(mark), content)
        self.fetched = content
        self.quorum.caught_up(mark)

    def on_catch_up_dropped(self) -> None:
        self.catching_up = None

    def on_caught_up(self, mark: Mark) -> None:
        assert self.catching_up == mark
        self.catching_up = None
        self.cluster.jumps += 1
        if self.fetched[: len(self.content)] != self.content:
            self.cluster.world.fail("a jump contradicts what was handed up", self.node_id)
        self.file.append(self.fetched[len(self.content) :])
        self.content = bytearray(self.fetched)
        self.cluster.invariants.caught_up(self.node_id, mark, self)
        self.last_delivered = mark.index

    def on_contacts(self, node_id: int, contacts: bytes) -> None:
        pass

    def on_confirmed(self, node_id: int, confirmed: bytes) -> None:
        pass

    def on_digest(self, node_id: int, digest: bytes, voter: bool) -> None:
        self.cluster.digests += 1

    def on_stopped(self, reason: str) -> None:
        self.stopped = reason
        self.cluster.stopped.append((self.node_id, reason))
        if "contradicts" not in reason:
            # The disk failed or is full: the process ends, and its supervisor starts another.
            self.cluster.start_later(self.node_id)
            self.process.schedule(0, self.process.kill, "exit")


@dataclass
class Counts:
    proposed: int = 0
    acknowledged: int = 0
    reads: int = 0
    refused_reads: int = 0


class Proposers:
    """Clients that propose at whichever node leads, and remember what was acknowledged."""

    def __init__(self, cluster: "QuorumCluster") -> None:
        self.cluster = cluster
        self.random = cluster.world.random("proposers")
        self.counts = Counts()
        self.next = 0
        self.waiting: dict[int, dict[bytes, None]] = {}

    def start(self) -> None:
        self._plan(self.cluster.shape.proposals_per_s, self._propose)
        self._plan(self.cluster.shape.reads_per_s, self._read)

    def _plan(self, rate: float, act: Callable[[], None]) -> None:
        def go() -> None:
            act()
            if self.cluster.busy:
                delay = self.random.expovariate(rate)
                self.cluster.world.schedule(int(delay * US), go, None, "client")

        go()

    def _leaders(self) -> list[Owner]:
        return [o for o in self.cluster.owners.values() if o.process.alive and o.leads is not None]

    def _propose(self) -> None:
        for owner in self._leaders():
            burst = 1 if self.random.random() < 0.7 else self.random.randrange(2, 12)
            # Scheduled, not run: what is sent to a frozen process waits for it.
            owner.process.schedule(0, partial(self._burst, owner, burst), "propose")

    def _burst(self, owner: Owner, burst: int) -> None:
        for _ in range(burst):
            self.next += 1
            size = self.random.randrange(*self.cluster.shape.payload_bytes)
            payload = self.next.to_bytes(8, "big") + bytes(size)
            try:
                owner.quorum.propose(payload)
            except (NoRoomError, NotLeaderError, QuorumStoppedError):
                return
            self.counts.proposed += 1
            self.waiting.setdefault(id(owner), {})[payload] = None

    def committed(self, owner: Owner, epoch: int, payloads: Sequence[bytes]) -> None:
        """The proposing leader hands it up: that is the acknowledgement."""
        mine = self.waiting.get(id(owner))
        if owner.leads is None or not mine:
            return
        for payload in payloads:
            if payload in mine:
                del mine[payload]
                self.counts.acknowledged += 1
                self.cluster.invariants.acknowledged(payload)

    def _read(self) -> None:
        owners = [o for o in self.cluster.owners.values() if o.process.alive]
        for owner in owners:
            if owner.leads is not None or self.random.random() < 0.1:
                must_see = self.cluster.invariants.acknowledged_index
                owner.process.schedule(0, partial(self._ask, owner, must_see), "read")

    def _ask(self, owner: Owner, must_see: int) -> None:
        def ready(may_read: bool) -> None:
            if may_read:
                self.counts.reads += 1
                self.cluster.invariants.read(owner.node_id, owner.last_delivered, must_see)
            else:
                self.counts.refused_reads += 1

        owner.quorum.read_index(ready)


@dataclass
class QuorumCluster:
    """All of it; also what the nemesis needs (`runtime.simulated.nemesis.Cluster`)."""

    seed: int
    shape: Shape = field(default_factory=Shape)

    def __post_init__(self) -> None:
        self.world = World(self.seed)
        self.network = SimulatedNetwork(self.world)
        self.hosts = {
            node_id: SimulatedHost(self.world, self.network, node_id)
            for node_id in range(1, self.shape.nodes + 1)
        }
        self.peers = tuple(self.network.peer(node_id) for node_id in self.hosts)
        dice = self.world.random("shape")
        for host in self.hosts.values():
            host.faults.set_profile(dice.choice(self.shape.disks))
        self.format_dice = self.world.random("formats")
        self.owners: dict[int, Owner] = {}
        self.disks: dict[int, Any] = {}
        self.links: dict[int, SimulatedLinks] = {}
        self.invariants = Invariants(self)
        self.proposers = Proposers(self)
        self.busy = True
        self.fault_atlas: ClusterFaultAtlas | None = None
        self.leaderships = self.installs = self.jumps = self.digests = 0
        self.stopped: list[tuple[int, str]] = []
        self.world.after_event(self.invariants.after_event)

    def expect_damage(self) -> ClusterFaultAtlas:
        """From now on folders may be damaged; return who watches over that."""

        def quorum_of(node_id: int) -> QuorumNode | None:
            owner = self.owners.get(node_id)
            return None if owner is None else owner.quorum

        # The owner's own file has no checksums: what rots there is not the quorum's business.
        self.fault_atlas = ClusterFaultAtlas(self, CLUSTER_ID, quorum_of, ())
        self.world.after_event(self.fault_atlas.after_event)
        return self.fault_atlas

    def config(self, node_id: int) -> QuorumConfig:
        return QuorumConfig(
            cluster_id=CLUSTER_ID,
            node_id=node_id,
            peers=self.peers,
            first_voters=self.shape.first_voters,
            tail_bytes=self.shape.tail_bytes,
            segment_bytes=self.shape.segment_bytes,
            window_bytes=self.shape.window_bytes,
            newest_format=self.draw_format(node_id),
        )

    def draw_format(self, node_id: int) -> int:
        """Draw the newest wire format of a node's next incarnation, with its own random source."""
        formats = self.shape.formats
        return formats[0] if len(formats) == 1 else self.format_dice.choice(formats)

    def start(self, node_id: int) -> None:
        host = self.hosts[node_id]
        process = host.boot()
        owner = Owner(self, node_id, process)
        self.owners[node_id] = owner

        def begin() -> None:
            disk = self.disks[node_id] = host.disk()
            links = self.links[node_id] = host.links()
            stream = self.world.random(f"node/{node_id}")
            owner.quorum = QuorumNode(
                self.config(node_id),
                clock=process.clock,
                random=random_module.Random(stream.getrandbits(64)),
                disk=disk,
                links=links,
                listener=owner,
                log=quiet_log() if self.fault_atlas is None else self.fault_atlas.log(node_id),
            )
            self.invariants.restarted(node_id)
            try:
                owner.open(owner.quorum.start())
            except REFUSALS as error:
                if self.fault_atlas is None:
                    raise
                process.kill()
                self.fault_atlas.refused(node_id, error)
            except OSError:
                self.start_later(node_id)
                process.kill()
            else:
                if self.fault_atlas is not None:
                    self.fault_atlas.started(node_id)

        process.run(begin, "start")

    def start_later(self, node_id: int) -> None:
        """What a supervisor does when a process ended by itself."""

        def again() -> None:
            if not self.hosts[node_id].running:
                self.start(node_id)
            elif self.owners[node_id].stopped:
                # A slow disk keeps it a little longer.
                self.start_later(node_id)

        self.world.schedule(int(0.5 * US), again, None, "supervisor")

    def start_all(self) -> None:
        for node_id in self.hosts:
            self.start(node_id)

    def leader(self) -> int | None:
        leading = [
            (owner.quorum.context.term, node_id)
            for node_id, owner in self.running()
            if owner.quorum.context.core is not None
            and owner.quorum.context.core.role is Role.LEADER
        ]
        return max(leading)[1] if leading else None

    def running(self) -> list[tuple[int, Owner]]:
        return [
            (node_id, owner)
            for node_id, owner in self.owners.items()
            if owner.process.alive and hasattr(owner.quorum, "context")
        ]

    def reset_link(self, one: int, other: int) -> None:
        links = self.links.get(one)
        if links is not None and self.hosts[one].running:
            links.reset(other)

    def serving(self) -> int | None:
        """Return the node whose owner knows that it leads, in the highest epoch."""
        leading = [(o.leads, n) for n, o in self.running() if o.leads is not None]
        return max(leading)[1] if leading else None

    def caught_up(self) -> bool:
        """Every node has been handed all that any was."""
        if len(self.running()) < len(self.hosts) or self.serving() is None:
            return False
        ends = {owner.last_delivered for _, owner in self.running()}
        return len(ends) == 1 and ends.pop() >= self.invariants.acknowledged_index
