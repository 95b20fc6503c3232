"""Puts real cores into each degraded mode, on simulated disks, clocks and network.

Rule: a mode is brought about by its real cause, never by a flag: the network cuts a node off, a
disk is full.
"""

import errno
from base64 import b64encode
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from metadata.records import PartitionChangeRecord
from metadata.sealing import ClusterKey
from runtime.simulated.disk_faults import STUCK
from runtime.simulated.process import Death
from tests.degraded.table import DegradedMode
from tests.unit.controller.cluster import DECLARED, keep_alive
from tests.unit.controller.node_authority import authority
from tests.unit.controller.real_cluster import RealCluster

READ_ONLY = ("write", "sync", "create", "rename", "unlink", "sync_folder")
MIB = 1024 * 1024
STALE = 99
"""A controller that is registered and gone."""


class Situation(NamedTuple):
    """A cluster with a node in a mode."""

    cluster: Any
    node: int
    broker: Any


def _made_credentials(cluster: Any) -> dict[str, str]:
    """Make tokens and a revocation. Return the id of the token for each route that changes one."""
    ids = {}
    for number, route in enumerate(("rotate_access_token", "revoke_access_token"), start=1):
        body = {"principal": "User:a", "sha256": b64encode(bytes([number]) * 32).decode()}
        status, reply = cluster.ask("POST", "/v1/access-tokens", body)
        assert status == 200, reply
        ids[route] = reply["token"]["tokenId"]
    for number, route in enumerate(("join", "revoke_join_token"), start=3):
        digest = b64encode(bytes([number]) * 32).decode()
        joins = {"role": "broker", "nodeId": 5, "sha256": digest, "lifetimeMs": 600_000_000}
        status, reply = cluster.ask("POST", "/v1/join-tokens", joins)
        assert status == 200, reply
        ids[route] = reply["token"]["tokenId"]
    status, reply = cluster.ask("POST", "/v1/revocations", {"serial": "0B"})
    assert status == 200, reply
    return ids


Enter = Callable[[], Situation]
ENTER: dict[tuple[DegradedMode, str], Enter] = {}
"""By mode and what brought it about."""


def _enters(mode: DegradedMode, by: str = "") -> Callable[[Enter], Enter]:
    def note(enter: Enter) -> Enter:
        ENTER[mode, by] = enter
        return enter

    return note


def _seed_of(node_id: int) -> bytes:
    """Each controller has a key of its own for heads: one key counts for one voter."""
    return bytes((node_id,)) * 32


def healthy(nodes: int = 3, **config: Any) -> Situation:
    """A cluster with topics, a checkpoint on every node, and all at one offset."""
    signs = {"head_seed": _seed_of, "head_interval_s": 0.25}
    known = {"cluster_key": ClusterKey(bytes(32)), "authority": authority(), **signs}
    cluster: Any = RealCluster(nodes=nodes, archived=True, **known, **config)
    brokers = cluster.online(1, 2, features=DECLARED)
    cluster.create_topic("t", factor=2)
    cluster.create_topic("u", factor=1)
    # Broker 1 leads both, and is the preferred leader of neither: there is something to elect.
    cluster.assign("led", (2, 1), (2, 1))
    cluster.assign("moved", (2, 1))
    led = cluster.image.topics.named("led").topic_id
    cluster.write(*(PartitionChangeRecord(n, led, leader=1) for n in (0, 1)))
    keep_alive(cluster, brokers, 2.0)
    cluster.run_until(lambda: len(cluster.image.cluster.controllers) == nodes)
    prepare_clients(cluster)
    cluster.staying = brokers[1]
    cluster.settle()
    for node, controller in cluster.controllers.items():
        cluster.processes[node].run(controller.write_checkpoint)
    cluster.run(0.5)
    note_checkpoint(cluster, cluster.shared.leader)
    return Situation(cluster, cluster.shared.leader, brokers[0])


def prepare_clients(cluster: Any) -> None:
    """What the routes about clients, controllers and coordination are asked for."""
    credential = {"name": "t", "mechanism": "SCRAM-SHA-256", "iterations": 4096}
    secrets = {"salt": "c2FsdA==", "saltedPassword": b64encode(bytes(32)).decode()}
    for path, body in (
        ("/v1/users/scram", {"upsertions": [credential | secrets]}),
        ("/v1/tokens", {}),
    ):
        status, reply = cluster.ask("POST", path, body)
        assert status == 200, reply
    cluster.token = (reply["token"]["tokenId"], reply["hmac"])
    cluster.log_tokens = _made_credentials(cluster)
    opened = [
        cluster.ask("POST", "/v1/coordination/sessions", {"ttlMs": 600_000})[1] for _ in range(2)
    ]
    cluster.sessions = tuple(reply["sessionId"] for reply in opened)
    for name in ("held", "left", "broken"):
        entry = {"kind": "lock", "name": name, "id": "1", "sessionId": cluster.sessions[0]}
        assert cluster.ask("POST", "/v1/coordination/entries", entry)[0] == 200
    source = {"source": "a test", "revision": 1}
    begun = source | {"sourceClusterId": "", "fromRevision": -1}
    assert cluster.ask("POST", "/v1/bridge/follow", begun)[0] == 200
    leads = source | {"mode": "leading", "claimEpoch": 1}
    assert cluster.ask("POST", "/v1/bridge/mode", leads)[0] == 200
    known = next(iter(cluster.image.cluster.controllers.values()))
    cluster.write(msgspec.structs.replace(known, controller_id=STALE))


def note_checkpoint(cluster: Any, node: int) -> None:
    """What is asked for must be there."""
    cluster.snapshot = cluster.controllers[node]._storage.snapshotting.offer.id


def others(cluster: Any, node: int) -> list[int]:
    return [each for each in cluster.hosts if each != node]


def leave_room(cluster: Any, *nodes: int) -> None:
    """Less than what is kept in reserve."""
    for node in nodes:
        host = cluster.hosts[node]
        host.faults.capacity_bytes = host.platter.used_bytes() + MIB


@_enters(DegradedMode.NO_QUORUM)
def no_quorum() -> Situation:
    cluster, leader, broker = healthy()
    gone, left = others(cluster, leader)
    cluster.kill(leader)
    cluster.kill(gone)
    cluster.run(3.0)
    return Situation(cluster, left, broker)


@_enters(DegradedMode.CUT_OFF)
def cut_off() -> Situation:
    cluster, leader, broker = healthy()
    cluster.network.cut([leader], others(cluster, leader))
    return Situation(cluster, leader, broker)


@_enters(DegradedMode.DEPOSED)
def deposed() -> Situation:
    cluster, leader, broker = cut_off()
    cluster.run(3.0)
    return Situation(cluster, leader, broker)


@_enters(DegradedMode.UNNOTICED)
def unnoticed() -> Situation:
    cluster, leader, broker = healthy()
    cluster.hosts[leader].pause()
    cluster.run(0.1)
    return Situation(cluster, others(cluster, leader)[0], broker)


@_enters(DegradedMode.ELECTING)
def electing() -> Situation:
    """Its process is gone, and the two that are left don't hear each other well enough."""
    cluster, leader, broker = healthy()
    one, other = others(cluster, leader)
    cluster.network.block(other, one)
    cluster.kill(leader)
    cluster.run(1.5)
    return Situation(cluster, one, broker)


@_enters(DegradedMode.LOADING)
def loading() -> Situation:
    cluster, leader, broker = healthy()
    node = others(cluster, leader)[0]
    cluster.kill(node)
    cluster.start(node)
    assert not cluster.controllers[node]._storage.files.ready
    return Situation(cluster, node, broker)


@_enters(DegradedMode.STUCK)
def stuck() -> Situation:
    cluster, leader, broker = healthy()
    cluster.hosts[leader].faults.set_profile(STUCK)
    cluster.run(0.1)
    return Situation(cluster, leader, broker)


@_enters(DegradedMode.ROOM_LEADER)
def room_leader() -> Situation:
    cluster, leader, broker = healthy()
    leave_room(cluster, leader)
    cluster.run(3.0)
    return Situation(cluster, leader, broker)


@_enters(DegradedMode.ROOM_FOLLOWER)
def room_follower() -> Situation:
    cluster, leader, broker = healthy()
    node = others(cluster, leader)[0]
    leave_room(cluster, node)
    cluster.run(3.0)
    return Situation(cluster, node, broker)


@_enters(DegradedMode.ROOM_MAJORITY)
def room_majority() -> Situation:
    cluster, leader, broker = healthy()
    leave_room(cluster, *others(cluster, leader))
    cluster.run(3.0)
    cluster.create_topic("there-is-one-with-room", factor=1)
    return Situation(cluster, others(cluster, leader)[0], broker)


@_enters(DegradedMode.ROOM_ALL)
def room_all() -> Situation:
    cluster, _, broker = healthy()
    leave_room(cluster, *cluster.hosts)
    cluster.run(8.0)
    leads = lambda c: c._leader.proposer.pending is not None  # noqa: E731 - said twice
    cluster.run_until(lambda: any(map(leads, cluster.controllers.values())))
    cluster.run(1.5)
    (leader,) = (n for n, c in cluster.controllers.items() if leads(c))
    return Situation(cluster, leader, broker)


@_enters(DegradedMode.LEDGER_FULL)
def ledger_full() -> Situation:
    """The journal has its place already, by two writes; the ledger's, the third, finds none."""
    cluster, leader, broker = healthy()
    cluster.hosts[leader].faults.fail("write", 2, errno.ENOSPC)
    _change(cluster, leader)
    cluster.run_until(lambda: cluster.controllers[leader]._replica.applier.disk_full)
    return Situation(cluster, leader, broker)


def _stopped(
    on_leader: bool, fault: Callable[[Any], None], act: Callable[[Any, int], None]
) -> Enter:
    def enter() -> Situation:
        cluster, leader, broker = healthy()
        node = leader if on_leader else others(cluster, leader)[0]
        fault(cluster.hosts[node].faults)
        act(cluster, node)
        cluster.run_until(lambda: node in cluster.stopped)
        return Situation(cluster, node, broker)

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
    ENTER[DegradedMode.STOPPED, f"no byte left, {_who}"] = _stopped(_leads, _full, _change)
    ENTER[DegradedMode.STOPPED, f"read-only, {_who}"] = _stopped(_leads, _read_only, _change)
    ENTER[DegradedMode.STOPPED, f"read-only, {_who}, idle"] = _stopped(
        _leads, _read_only, lambda cluster, node: None
    )
    for _operation in ("write", "sync"):
        ENTER[DegradedMode.STOPPED, f"EIO of the journal's {_operation}, {_who}"] = _stopped(
            _leads, lambda faults, of=_operation: faults.fail(of), _change
        )
    ENTER[DegradedMode.STOPPED, f"EIO of a checkpoint, {_who}"] = _stopped(
        _leads, lambda faults: None, lambda cluster, node: _fail_checkpoint(cluster, node, "rename")
    )
    ENTER[DegradedMode.STOPPED, f"EIO of the ledger's write, {_who}"] = _stopped(
        _leads, lambda faults: faults.fail("write", 2), _change
    )
    ENTER[DegradedMode.STOPPED, f"EIO of the ledger's sync, {_who}"] = _stopped(
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


@_enters(DegradedMode.DAMAGED)
def damaged() -> Situation:
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
    return Situation(cluster, node, broker)


@_enters(DegradedMode.OBSERVING)
def observing() -> Situation:
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
    return Situation(cluster, node, broker)


@_enters(DegradedMode.FORMING)
def forming() -> Situation:
    """Three empty folders, and one is not started."""
    cluster, _, broker = healthy()
    for node in list(cluster.controllers):
        cluster.kill(node)
        cluster.hosts[node].platter.names.clear()
    cluster.start(1)
    cluster.start(2)
    cluster.run(2.0)
    return Situation(cluster, 1, broker)


@_enters(DegradedMode.DIVERGED)
def diverged() -> Situation:
    """The memory of one rots: its image is not what its log says."""
    cluster, leader, broker = healthy()
    node = others(cluster, leader)[0]
    applier = cluster.controllers[node]._replica.applier
    wrong = applier.image.state_hash.plus(1, 0)
    applier.image = msgspec.structs.replace(applier.image, state_hash=wrong)
    cluster.create_topic("it-differs-from-here", factor=1)
    cluster.run(1.0)
    return Situation(cluster, node, broker)


@_enters(DegradedMode.OVERLOADED)
def overloaded() -> Situation:
    """A decision that takes many slices is being made, and as many changes wait as may."""
    cluster, leader, broker = healthy(waiting_decisions_max=3)
    cluster.hold_the_turn()
    for number in range(3):
        cluster.send("POST", "/v1/topics", {"topics": [{"name": f"waits-{number}"}]})
    return Situation(cluster, leader, broker)


@_enters(DegradedMode.CROWDED)
def crowded() -> Situation:
    """Two are held, and there is room for two."""
    cluster, leader, broker = healthy(parked_requests_max=2)
    end = str(cluster.controllers[leader].image.offset)
    for _ in range(2):
        held = cluster.send("GET", "/v1/log", query={"offset": end, "waitMs": "30000"})
        broker.send(max_wait_ms=2000)
        assert not held
    return Situation(cluster, leader, broker)


@_enters(DegradedMode.STOPPING)
def stopping() -> Situation:
    cluster, leader, broker = healthy()
    cluster.processes[leader].run(cluster.controllers[leader].stop)
    return Situation(cluster, leader, broker)
