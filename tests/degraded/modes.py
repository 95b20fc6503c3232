"""How real cores are put into each degraded mode, on simulated disks, clocks and network.

Rule: a mode is brought about by what brings it about in life, never by a flag: who is cut off is
cut off, and a disk that is full is full.
"""

import errno
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from controller.http.degraded import Mode
from runtime.simulated.disk_faults import STUCK
from runtime.simulated.process import Death
from tests.unit.controller.cluster import DECLARED, keep_alive
from tests.unit.controller.real_cluster import RealCluster

READ_ONLY = ("write", "sync", "create", "rename", "unlink", "sync_folder")
MIB = 1024 * 1024


class Standing(NamedTuple):
    """A cluster with a node in a mode."""

    cluster: Any
    node: int
    broker: Any


Enter = Callable[[], Standing]
ENTER: dict[tuple[Mode, str], Enter] = {}
"""By mode and what brought it about."""


def _enters(mode: Mode, by: str = "") -> Callable[[Enter], Enter]:
    def note(enter: Enter) -> Enter:
        ENTER[mode, by] = enter
        return enter

    return note


def healthy(nodes: int = 3, **config: Any) -> Standing:
    """A cluster with topics, a checkpoint on every node, and all at one offset."""
    cluster: Any = RealCluster(nodes=nodes, **config)
    brokers = cluster.online(1, 2, features=DECLARED)
    cluster.create_topic("t", factor=2)
    cluster.create_topic("u", factor=1)
    keep_alive(cluster, brokers, 2.0)
    cluster.settle()
    for node, controller in cluster.controllers.items():
        cluster.processes[node].run(controller.write_checkpoint)
    cluster.run(0.5)
    note_checkpoint(cluster, cluster.shared.leader)
    return Standing(cluster, cluster.shared.leader, brokers[0])


def note_checkpoint(cluster: Any, node: int) -> None:
    """What is asked for must be there."""
    cluster.snapshot = cluster.controllers[node]._snapshotting.offer.id


def others(cluster: Any, node: int) -> list[int]:
    return [each for each in cluster.hosts if each != node]


def leave_room(cluster: Any, *nodes: int) -> None:
    """Less than what is kept in reserve."""
    for node in nodes:
        host = cluster.hosts[node]
        host.faults.capacity_bytes = host.platter.used_bytes() + MIB


@_enters(Mode.NO_QUORUM)
def no_quorum() -> Standing:
    cluster, leader, broker = healthy()
    gone, left = others(cluster, leader)
    cluster.kill(leader)
    cluster.kill(gone)
    cluster.run(3.0)
    return Standing(cluster, left, broker)


@_enters(Mode.CUT_OFF)
def cut_off() -> Standing:
    cluster, leader, broker = healthy()
    cluster.network.cut([leader], others(cluster, leader))
    return Standing(cluster, leader, broker)


@_enters(Mode.DEPOSED)
def deposed() -> Standing:
    cluster, leader, broker = cut_off()
    cluster.run(3.0)
    return Standing(cluster, leader, broker)


@_enters(Mode.UNNOTICED)
def unnoticed() -> Standing:
    cluster, leader, broker = healthy()
    cluster.hosts[leader].pause()
    cluster.run(0.1)
    return Standing(cluster, others(cluster, leader)[0], broker)


@_enters(Mode.ELECTING)
def electing() -> Standing:
    """Its process is gone, and the two that are left don't hear each other well enough."""
    cluster, leader, broker = healthy()
    one, other = others(cluster, leader)
    cluster.network.block(other, one)
    cluster.kill(leader)
    cluster.run(1.5)
    return Standing(cluster, one, broker)


@_enters(Mode.LOADING)
def loading() -> Standing:
    cluster, leader, broker = healthy()
    node = others(cluster, leader)[0]
    cluster.kill(node)
    cluster.start(node)
    assert not cluster.controllers[node]._storage.ready
    return Standing(cluster, node, broker)


@_enters(Mode.STUCK)
def stuck() -> Standing:
    cluster, leader, broker = healthy()
    cluster.hosts[leader].faults.set_profile(STUCK)
    cluster.run(0.1)
    return Standing(cluster, leader, broker)


@_enters(Mode.ROOM_LEADER)
def room_leader() -> Standing:
    cluster, leader, broker = healthy()
    leave_room(cluster, leader)
    cluster.run(3.0)
    return Standing(cluster, leader, broker)


@_enters(Mode.ROOM_FOLLOWER)
def room_follower() -> Standing:
    cluster, leader, broker = healthy()
    node = others(cluster, leader)[0]
    leave_room(cluster, node)
    cluster.run(3.0)
    return Standing(cluster, node, broker)


@_enters(Mode.ROOM_MAJORITY)
def room_majority() -> Standing:
    cluster, leader, broker = healthy()
    leave_room(cluster, *others(cluster, leader))
    cluster.run(3.0)
    cluster.create_topic("there-is-one-with-room", factor=1)
    return Standing(cluster, others(cluster, leader)[0], broker)


@_enters(Mode.ROOM_ALL)
def room_all() -> Standing:
    cluster, _, broker = healthy()
    leave_room(cluster, *cluster.hosts)
    cluster.run(8.0)
    leads = lambda c: c._proposer.pending is not None  # noqa: E731 - said twice
    cluster.run_until(lambda: any(map(leads, cluster.controllers.values())))
    cluster.run(1.5)
    (leader,) = (n for n, c in cluster.controllers.items() if leads(c))
    return Standing(cluster, leader, broker)


@_enters(Mode.LEDGER_FULL)
def ledger_full() -> Standing:
    """The journal has its place already, by two writes; the ledger's, the third, finds none."""
    cluster, leader, broker = healthy()
    cluster.hosts[leader].faults.fail("write", 2, errno.ENOSPC)
    _change(cluster, leader)
    cluster.run_until(lambda: cluster.controllers[leader]._applier.disk_full)
    return Standing(cluster, leader, broker)


def _stopped(
    on_leader: bool, fault: Callable[[Any], None], act: Callable[[Any, int], None]
) -> Enter:
    def enter() -> Standing:
        cluster, leader, broker = healthy()
        node = leader if on_leader else others(cluster, leader)[0]
        fault(cluster.hosts[node].faults)
        act(cluster, node)
        cluster.run_until(lambda: node in cluster.stopped)
        return Standing(cluster, node, broker)

    return enter


def _change(cluster: Any, node: int) -> None:
    cluster.send("POST", "/v1/topics", {"topics": [{"name": "x", "replicationFactor": 1}]})


def _checkpoint(cluster: Any, node: int) -> None:
    _change(cluster, node)
    cluster.run(0.2)
    cluster.processes[node].run(cluster.controllers[node].write_checkpoint)


def _read_only(faults: Any) -> None:
    for operation in READ_ONLY:
        faults.fail(operation, error=errno.EROFS, lasting=True)


def _full(faults: Any) -> None:
    for operation in ("write", "create"):
        faults.fail(operation, error=errno.ENOSPC, lasting=True)


for _who, _leads in (("leader", True), ("follower", False)):
    ENTER[Mode.STOPPED, f"no byte left, {_who}"] = _stopped(_leads, _full, _change)
    ENTER[Mode.STOPPED, f"read-only, {_who}"] = _stopped(_leads, _read_only, _change)
    ENTER[Mode.STOPPED, f"read-only, {_who}, idle"] = _stopped(
        _leads, _read_only, lambda cluster, node: None
    )
    for _operation in ("write", "sync"):
        ENTER[Mode.STOPPED, f"EIO of the journal's {_operation}, {_who}"] = _stopped(
            _leads, lambda faults, of=_operation: faults.fail(of), _change
        )
    ENTER[Mode.STOPPED, f"EIO of a checkpoint, {_who}"] = _stopped(
        _leads, lambda faults: None, lambda cluster, node: _fail_checkpoint(cluster, node, "rename")
    )
    ENTER[Mode.STOPPED, f"EIO of the ledger's write, {_who}"] = _stopped(
        _leads, lambda faults: faults.fail("write", 2), _change
    )
    ENTER[Mode.STOPPED, f"EIO of the ledger's sync, {_who}"] = _stopped(
        _leads, lambda faults: None, lambda cluster, node: _fail_checkpoint(cluster, node, "later")
    )


def _fail_checkpoint(cluster: Any, node: int, what: str) -> None:
    _change(cluster, node)
    cluster.run(0.5)
    faults = cluster.hosts[node].faults
    if what == "rename":
        faults.fail("rename")
    cluster.processes[node].run(cluster.controllers[node].write_checkpoint)
    if what == "later":
        events = len(cluster.events("checkpoint_written"))
        cluster.run_until(lambda: len(cluster.events("checkpoint_written")) > events)
        faults.fail("sync")


@_enters(Mode.DAMAGED)
def damaged() -> Standing:
    """One of five; another is away, so that the leader could have been elected with it."""
    cluster, leader, broker = healthy(nodes=5)
    node, away = others(cluster, leader)[:2]
    cluster.kill(away)
    cluster.kill(node, Death.POWER)
    platter = cluster.hosts[node].platter
    name = max(name for name in platter.names if name.endswith(".wal"))
    content = platter.names[name].content
    content[len(content) // 2] ^= 1
    cluster.start(node)
    cluster.run(3.0)
    return Standing(cluster, node, broker)


@_enters(Mode.OBSERVING)
def observing() -> Standing:
    cluster, leader, broker = healthy()
    node = others(cluster, leader)[0]
    cluster.kill(node, Death.POWER)
    platter = cluster.hosts[node].platter
    platter.names.clear()
    cluster.start(node)
    cluster.run(3.0)
    cluster.processes[node].run(cluster.controllers[node].write_checkpoint)
    cluster.run(0.5)
    note_checkpoint(cluster, node)
    return Standing(cluster, node, broker)


@_enters(Mode.FORMING)
def forming() -> Standing:
    """Three empty folders, and one is not started."""
    cluster, _, broker = healthy()
    for node in list(cluster.controllers):
        cluster.kill(node)
        cluster.hosts[node].platter.names.clear()
    cluster.start(1)
    cluster.start(2)
    cluster.run(2.0)
    return Standing(cluster, 1, broker)


@_enters(Mode.DIVERGED)
def diverged() -> Standing:
    """The memory of one rots: its image is not what its log says."""
    cluster, leader, broker = healthy()
    node = others(cluster, leader)[0]
    applier = cluster.controllers[node]._applier
    wrong = applier.image.state_hash.plus(1, 0)
    applier.image = msgspec.structs.replace(applier.image, state_hash=wrong)
    cluster.create_topic("it-differs-from-here", factor=1)
    cluster.run(1.0)
    return Standing(cluster, node, broker)


@_enters(Mode.OVERLOADED)
def overloaded() -> Standing:
    """A decision that takes many slices is being made, and as many changes wait as may."""
    cluster, leader, broker = healthy(waiting_decisions_max=3)
    cluster.hold_the_turn()
    for number in range(3):
        cluster.send("POST", "/v1/topics", {"topics": [{"name": f"waits-{number}"}]})
    return Standing(cluster, leader, broker)


@_enters(Mode.CROWDED)
def crowded() -> Standing:
    """Two are held, and there is room for two."""
    cluster, leader, broker = healthy(parked_requests_max=2)
    end = str(cluster.controllers[leader].image.offset)
    for _ in range(2):
        held = cluster.send("GET", "/v1/log", query={"offset": end, "waitMs": "30000"})
        broker.send(max_wait_ms=2000)
        assert not held
    return Standing(cluster, leader, broker)


@_enters(Mode.STOPPING)
def stopping() -> Standing:
    cluster, leader, broker = healthy()
    cluster.processes[leader].run(cluster.controllers[leader].stop)
    return Standing(cluster, leader, broker)
