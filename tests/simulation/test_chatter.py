"""What the nodes of a quorum do for one change, counted: frames, syncs, runs of the Raft core.

One client has one proposal under way, so nothing is shared between changes.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from quorum.guard.replication import NOTICE_S
from quorum.wire.formats import OLDEST_FORMAT
from quorum.wire.frames import FrameKind
from tests.simulation.quorum_cluster import Owner, QuorumCluster
from tests.simulation.quorum_scenario import cluster, followers_of, leader_of, settles, stop_all

pytestmark = pytest.mark.simulation

CHANGES = 200
Counts = Counter[tuple[bool, str]]
"""By whether the leader did it, and what it was: the kind of a frame, `sync` or `core`."""


def resting(**shape: Any) -> QuorumCluster:
    made = cluster(**shape)
    settles(made)
    made.world.run_for(2)
    return made


def counted(made: QuorumCluster) -> Counts:
    """Begin to count what each node does."""
    counts: Counts = Counter()
    for node_id in made.hosts:
        leads = node_id == leader_of(made)
        core = made.owners[node_id].quorum.context.core
        assert core is not None
        links, disk = made.links[node_id], made.disks[node_id]
        count(counts, leads, links, "send", lambda _, frame: FrameKind(frame[1]).name)
        count(counts, leads, disk, "sync", lambda *_: "sync")
        count(counts, leads, core, "on_timer", lambda: "core")
    return counts


def count(counts: Counts, leads: bool, thing: Any, method: str, name: Callable[..., str]) -> None:
    original = getattr(thing, method)

    def counting(*arguments: Any) -> Any:
        counts[leads, name(*arguments)] += 1
        return original(*arguments)

    setattr(thing, method, counting)


def change_one_by_one(made: QuorumCluster, changes: int, then: Callable[[], None]) -> None:
    """Propose on the leader, each time when the change before is acknowledged."""
    owner: Owner = made.owners[leader_of(made)]
    numbers = iter(range(10**6, 10**6 + changes))
    handed_up = owner.on_committed

    def propose() -> None:
        number = next(numbers, None)
        if number is None:
            then()
        else:
            owner.quorum.propose(number.to_bytes(8, "big") + bytes(100))

    def on_committed(*arguments: Any) -> None:
        handed_up(*arguments)
        propose()

    owner.on_committed = on_committed
    owner.process.schedule(0, propose, "client")


def changed(made: QuorumCluster, changes: int = CHANGES) -> Counts:
    """Count what so many changes take, from the first proposal to the last acknowledgement."""
    counts, done = counted(made), []
    change_one_by_one(made, changes, lambda: done.append(True))
    assert made.world.run_for(5, lambda: bool(done))
    return counts


def frames(counts: Counts, *, leads: bool) -> int:
    return sum(
        n for (by, what), n in counts.items() if by is leads and what in FrameKind.__members__
    )


def test_a_change_takes_one_append_and_one_acknowledgement_a_follower() -> None:
    made = resting()
    counts = changed(made)
    assert counts[True, "APPEND"] <= 2 * CHANGES * 1.01
    assert counts[False, "ACK"] <= 2 * CHANGES * 1.01
    # What is told once a heartbeat is shared by many changes.
    assert frames(counts, leads=True) <= 2 * CHANGES * 1.05
    assert frames(counts, leads=False) <= 2 * CHANGES * 1.05
    stop_all(made)


def test_a_change_is_synced_once_on_each_node() -> None:
    made = resting()
    counts = changed(made)
    assert counts[True, "sync"] <= CHANGES * 1.05
    assert counts[False, "sync"] <= 2 * CHANGES * 1.05
    stop_all(made)


def test_the_core_runs_twice_for_a_change_on_the_leader_and_once_on_a_follower() -> None:
    made = resting()
    counts = changed(made)
    assert counts[True, "core"] <= 2 * CHANGES * 1.05
    assert counts[False, "core"] <= 2 * CHANGES * 1.05
    stop_all(made)


def test_the_leader_remembers_each_acknowledgement_though_nobody_told_it_apart() -> None:
    made = resting()
    leader = made.owners[leader_of(made)].quorum.context.journal
    changed(made)
    made.world.run_for(0.005)
    for node_id in followers_of(made):
        journal = made.owners[node_id].quorum.context.journal
        known = leader.history.known[journal.directory_id]
        acknowledged = journal.position_of_entry(leader.durable_index)
        assert known.incarnation == journal.history.lineage.incarnation
        assert known.position >= acknowledged
    stop_all(made)


def test_on_a_link_of_format_1_a_frame_of_its_own_goes_ahead() -> None:
    made = resting(formats=(OLDEST_FORMAT,))
    counts = changed(made)
    assert counts[False, "REMEMBER"] >= 2 * CHANGES * 0.95
    # The leader doesn't answer each: how far it remembers a peer matters when a link opens.
    assert counts[True, "REMEMBER"] <= CHANGES * 0.1
    stop_all(made)


def test_followers_hear_of_a_lone_commit_soon_and_by_one_frame() -> None:
    made = resting()
    counts = changed(made, 1)
    index = made.owners[leader_of(made)].last_delivered
    assert made.world.run_for(
        2 * NOTICE_S, lambda: all(o.last_delivered == index for _, o in made.running())
    )
    made.world.run_for(2 * NOTICE_S)
    # A heartbeat may fall into that time.
    assert counts[True, "APPEND"] in (4, 6)
    stop_all(made)


def test_nodes_at_rest_send_heartbeats_and_sync_nothing() -> None:
    made = resting()
    for owner in made.owners.values():
        owner.quorum.set_digest(b"as of the last change")
    made.world.run_for(2)
    counts = counted(made)
    made.world.run_for(10)
    config = made.config(1)
    beats = 10 / (config.heartbeat_s + config.tick_s)
    assert 2 * (beats - 1) <= counts[True, "APPEND"] <= 2 * (10 / config.heartbeat_s + 1)
    assert counts[False, "ACK"] == pytest.approx(counts[True, "APPEND"], abs=2)
    # Followers answer the leader's digests, and tell each other what has changed.
    assert 2 * (beats - 1) <= counts[True, "DIGEST"] <= 2 * (10 / config.heartbeat_s + 1)
    assert counts[False, "DIGEST"] <= counts[True, "DIGEST"] + 2 * 10
    told = counts[True, "REMEMBER"] + counts[False, "REMEMBER"]
    assert told <= 6 * 10
    assert counts[True, "core"] <= 10 / config.tick_s + 1
    assert counts[False, "core"] <= 10 / config.tick_s + 2
    assert counts[True, "sync"] == counts[False, "sync"] == 0
    stop_all(made)


def test_a_digest_that_changes_reaches_all_with_the_next_heartbeats() -> None:
    made = resting()
    heard: dict[int, set[tuple[int, bytes]]] = {node_id: set() for node_id in made.hosts}
    for node_id, owner in made.owners.items():
        owner.on_digest = lambda source, digest, _voter, to=node_id: heard[to].add((source, digest))
        owner.quorum.set_digest(b"before")
    made.world.run_for(2)
    for node_id, owner in made.owners.items():
        owner.quorum.set_digest(b"after %d" % node_id)
    made.world.run_for(0.5)
    for node_id in made.hosts:
        others = [n for n in made.hosts if n != node_id]
        assert {(n, b"after %d" % n) for n in others} <= heard[node_id]
    stop_all(made)


def test_heartbeats_and_digests_wake_a_follower_together() -> None:
    made = resting()
    for owner in made.owners.values():
        owner.quorum.set_digest(b"as of the last change")
    made.world.run_for(2)
    arrivals: dict[str, list[float]] = {"APPEND": [], "DIGEST": []}
    follower, leader = followers_of(made)[0], leader_of(made)
    quorum = made.owners[follower].quorum
    on_frame = quorum.on_frame

    def arrived(node_id: int, frame: bytes) -> None:
        kind = FrameKind(frame[1]).name
        if node_id == leader and kind in arrivals:
            arrivals[kind].append(made.world.now)
        on_frame(node_id, frame)

    quorum.on_frame = arrived
    made.world.run_for(5)
    assert len(arrivals["APPEND"]) >= 30
    for append in arrivals["APPEND"][1:-1]:
        assert min(abs(append - digest) for digest in arrivals["DIGEST"]) < 0.01
    stop_all(made)


def test_a_follower_answers_its_leaders_digest_at_once_but_not_each_of_a_flood() -> None:
    made = resting()
    for owner in made.owners.values():
        owner.quorum.set_digest(b"as of the last change")
    made.world.run_for(2)
    follower, leader = followers_of(made)[0], leader_of(made)
    quorum, send, log = made.owners[follower].quorum, made.links[follower].send, list[str]()
    on_frame = quorum.on_frame

    def arrived(node_id: int, frame: bytes) -> None:
        if node_id == leader and frame[1] == FrameKind.DIGEST:
            log.append("theirs")
            for _ in range(10):
                on_frame(node_id, frame)
        on_frame(node_id, frame)

    def sends(node_id: int, frame: bytes) -> bool:
        if node_id == leader and frame[1] == FrameKind.DIGEST:
            log.append("ours")
        return send(node_id, frame)

    quorum.on_frame = arrived
    made.links[follower].send = sends
    made.world.run_for(5)
    assert len(log) >= 60
    assert log == ["theirs", "ours"] * (len(log) // 2)
    stop_all(made)
