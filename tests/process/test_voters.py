"""Real controllers whose voters change: a wiped one votes again after one command."""

import json
import shutil
import threading
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from logberg.local.toml_text import to_toml
from tests.conformance.ports import free_port
from tests.process.running_cluster import RunningCluster, Said, logberg
from tests.process.test_operating import figures

pytestmark = pytest.mark.process


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RunningCluster]:
    cluster = RunningCluster(tmp_path / "data", 3, 1, segment_bytes=4096, checkpoint_bytes=8192)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.kill()


@contextmanager
def writes_going_on(cluster: RunningCluster, name: str) -> Iterator[list[float]]:
    """One topic after another is created meanwhile. Gives when each was acknowledged."""
    over, failed = threading.Event(), []
    at: list[float] = []

    def write() -> None:
        try:
            while not over.is_set():
                cluster.create(f"{name}-{len(at)}")
                at.append(time.monotonic())
        except BaseException as error:
            failed.append(error)
            raise

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield at
    finally:
        over.set()
        writer.join(60.0)
        assert not writer.is_alive()
        assert not failed, failed


def more_written(cluster: RunningCluster, at: list[float], count: int = 20) -> None:
    wanted = len(at) + count
    cluster.until(lambda: len(at) >= wanted, f"{count} more topics are created")


def on_quorum(cluster: RunningCluster, *arguments: str) -> Said:
    return logberg("quorum", *arguments, "--data", str(cluster.folder))


def quorum(cluster: RunningCluster) -> dict[str, Any]:
    said = on_quorum(cluster, "status", "--output", "json")
    assert said.code == 0, said
    view: dict[str, Any] = json.loads(said.out)
    return view


def voters(cluster: RunningCluster) -> dict[int, str]:
    return {m["nodeId"]: m["directoryId"] for m in quorum(cluster)["members"] if m["isVoter"]}


def longest_pause(at: list[float]) -> float:
    return max((b - a for a, b in pairwise(at)), default=0.0)


def test_a_wiped_voter_votes_again_after_one_command_while_writes_go_on(
    cluster: RunningCluster,
) -> None:
    before = voters(cluster)
    wiped = cluster.standby()
    with writes_going_on(cluster, "meanwhile") as at:
        more_written(cluster, at)
        cluster.controller(wiped).kill()
        shutil.rmtree(cluster.data(wiped))
        more_written(cluster, at)
        early = on_quorum(cluster, "replace", str(wiped), "--wait", "0.5")
        assert early.code == 1
        assert f"controller {wiped} is not linked with the leader" in early.err
        cluster.controller(wiped).start()
        cluster.until(lambda: cluster.status(wiped), "the wiped controller answers")
        plan = on_quorum(cluster, "replace", str(wiped), "--dry-run")
        assert plan.code == 0, plan
        assert f"remove the folder {before[wiped]} of controller {wiped} and then" in plan.out
        assert voters(cluster) == before

        began = time.monotonic()
        done = on_quorum(cluster, "replace", str(wiped), "--reason", "its disk burnt")
        took = time.monotonic() - began
        assert done.code == 0, done
        more_written(cluster, at)
    after = voters(cluster)
    assert after.keys() == before.keys()
    assert {n for n in after if after[n] != before[n]} == {wiped}
    status = on_quorum(cluster, "status").out
    assert "which is committed" in status
    again = on_quorum(cluster, "replace", str(wiped))
    assert again.code == 1
    assert "there is nothing to replace" in again.err

    # Now each of the others can fail: the wiped one counts.
    other = next(n for n in cluster.local.controllers if n not in (wiped, cluster.leader()))
    cluster.controller(other).kill()
    with writes_going_on(cluster, "with-the-wiped-one") as at_last:
        more_written(cluster, at_last)
    print(
        f"replaced in {took:.2f} s while {len(at)} topics were created; the longest time between "
        f"two of them was {longest_pause(at):.2f} s"
    )
    cluster.controller(other).start()
    cluster.until(cluster.settled, "all three run")
    who = logberg("audit", "who", str(cluster.data(wiped)), "quorum")
    assert "its disk burnt" in who.out
    cluster.check_nothing_lost()


def only_first_three(cluster: RunningCluster) -> None:
    """Controllers 1 to 3 are configured without the others, who know all."""
    for n in (1, 2, 3):
        path = cluster.folder / "config" / f"controller-{n}.toml"
        config = tomllib.loads(path.read_text())
        config["controllers"] = config["controllers"][:3]
        path.write_text(to_toml(config))


def test_from_three_to_five_and_back_with_controllers_that_nobody_configured(
    tmp_path: Path,
) -> None:
    cluster = RunningCluster(tmp_path / "data", 5, 1, segment_bytes=4096, checkpoint_bytes=8192)
    only_first_three(cluster)
    try:
        for n in (1, 2, 3):
            cluster.controller(n).start()
        cluster.local.brokers[1].start()
        cluster.until(lambda: cluster.broker_states().get(1) == "online", "three serve")
        with writes_going_on(cluster, "meanwhile") as at:
            for n in (4, 5):
                cluster.controller(n).start()
                cluster.until(lambda n=n: cluster.status(n), f"controller {n} answers")
                said = on_quorum(cluster, "add", str(n), "--wait", "0")
                assert said.code == 1
                assert "no address" in said.err or "not linked" in said.err, said
                where = cluster.local.quorum_address(n)
                said = on_quorum(cluster, "add", str(n), "--listens", where)
                assert said.code == 0, said
            assert sorted(voters(cluster)) == [1, 2, 3, 4, 5]
            # A leader that the first three don't know from their files is found all the same.
            said = on_quorum(cluster, "transfer", "5")
            assert said.code == 0, said
            more_written(cluster, at, 10)
            for n in (1, 2):
                cluster.controller(n).kill()
            more_written(cluster, at, 10)
            for n in (1, 2):
                said = on_quorum(cluster, "remove", str(n))
                assert said.code == 0, said
            more_written(cluster, at, 10)
        assert sorted(voters(cluster)) == [3, 4, 5]
        print(f"the longest time between two topics was {longest_pause(at):.2f} s")
        for n in (1, 2):
            cluster.controller(n).start()
        cluster.until(cluster.settled, "all five run, and two observe")
        cluster.check_nothing_lost()
    finally:
        cluster.kill()


def test_the_leadership_goes_to_a_named_voter_and_a_leader_can_be_removed(
    cluster: RunningCluster,
) -> None:
    first = cluster.leader()
    named = next(n for n in cluster.local.controllers if n != first)
    with writes_going_on(cluster, "meanwhile") as at:
        more_written(cluster, at, 5)
        said = on_quorum(cluster, "transfer", str(named), "--reason", "work on the host")
        assert said.code == 0, said
        assert f"controller {named} leads in epoch" in said.out
        assert cluster.leader() == named
        said = on_quorum(cluster, "remove", str(named), "--reason", "its host goes")
        assert said.code == 0, said
        assert f"controller {named} leads" in said.err
        more_written(cluster, at, 5)
    assert sorted(voters(cluster)) == sorted(set(cluster.local.controllers) - {named})
    said = on_quorum(cluster, "transfer", str(named), "--wait", "0")
    assert f"node {named} is no voter" in said.err
    who = logberg("audit", "who", str(cluster.data(named)), "quorum").out
    assert "TransferLeadership" in who
    assert "work on the host" in who
    print(f"the longest time between two topics was {longest_pause(at):.2f} s")
    cluster.check_nothing_lost()


def test_a_voter_moves_and_the_others_find_it_though_their_files_name_its_old_address(
    cluster: RunningCluster,
) -> None:
    mover = cluster.standby()
    host, port = "127.0.0.1", free_port()
    with writes_going_on(cluster, "meanwhile") as at:
        more_written(cluster, at, 5)
        said = on_quorum(cluster, "move", str(mover), "--to", f"{host}:{port}", "--reason", "racks")
        assert said.code == 0, said
        assert f"look for controller {mover} at {host}:{port}" in said.out
        cluster.controller(mover).kill()
        path = cluster.folder / "config" / f"controller-{mover}.toml"
        config = tomllib.loads(path.read_text())
        own = next(c for c in config["controllers"] if c["node_id"] == mover)
        own["quorum"] = f"{host}:{port}"
        path.write_text(to_toml(config))
        cluster.controller(mover).start()
        cluster.until(cluster.settled, "all three run")
        other = next(n for n in cluster.local.controllers if n not in (mover, cluster.leader()))
        # It dials nobody that it is not linked with already, so it has to find the one that moved.
        cluster.controller(other).kill()
        more_written(cluster, at, 5)
        cluster.controller(other).start()
        cluster.until(cluster.settled, "all three run again")
    members = {m["nodeId"]: m for m in quorum(cluster)["members"]}
    assert (members[mover]["host"], members[mover]["port"]) == (host, port)
    assert sorted(members) == sorted(voters(cluster)) == [1, 2, 3]
    said = on_quorum(cluster, "transfer", str(mover))
    assert said.code == 0, said
    cluster.create("by-the-mover")
    print(f"the longest time between two topics was {longest_pause(at):.2f} s")
    cluster.check_nothing_lost()


def test_a_standing_observer_serves_and_votes_once_it_is_promoted(tmp_path: Path) -> None:
    cluster = RunningCluster(tmp_path / "data", 3, 1, segment_bytes=4096, checkpoint_bytes=8192)
    for n in cluster.local.controllers:
        path = cluster.folder / "config" / f"controller-{n}.toml"
        config = tomllib.loads(path.read_text())
        config["controllers"][2]["role"] = "observer"
        path.write_text(to_toml(config))
    try:
        cluster.start()
        assert sorted(voters(cluster)) == [1, 2]
        assert "standing observer" in on_quorum(cluster, "status").out
        leader = cluster.leader()
        seen = figures(cluster, leader)
        assert seen.value("logberg_quorum_observers") == 1
        roles = {
            sample.labels["node_id"]: sample.labels["role"]
            for sample in seen.all("logberg_quorum_replica_heard_seconds")
        }
        assert roles == {"3": "observer", str(3 - leader): "voter"}
        with writes_going_on(cluster, "meanwhile") as at:
            more_written(cluster, at)
            stale = cluster.ask(cluster.url(3), "GET", "/v1/topics?consistency=stale")
            assert stale.status == 200, stale
            said = on_quorum(cluster, "add", "3")
            assert said.code == 1
            assert "`logberg quorum promote 3` lets it vote" in said.err
            said = on_quorum(cluster, "promote", "3", "--reason", "site C is ready")
            assert said.code == 0, said
            more_written(cluster, at)
        assert sorted(voters(cluster)) == [1, 2, 3]
        # It counts, also after a restart with the same file: one of the others may go.
        cluster.controller(3).kill()
        cluster.controller(3).start()
        cluster.until(cluster.settled, "all three run")
        cluster.controller(1).kill()
        cluster.create("by-two-and-three")
        cluster.controller(1).start()
        cluster.until(cluster.settled, "all three run again")
        cluster.check_nothing_lost()
    finally:
        cluster.kill()


def test_what_must_not_be_done_is_refused_and_changes_nothing(cluster: RunningCluster) -> None:
    before = voters(cluster)
    leader = cluster.leader()
    one, two = (n for n in cluster.local.controllers if n != leader)
    cases = {
        ("remove", "9"): "node 9 is no voter; voters are",
        ("add", "9"): "node 9 is not linked",
        ("replace", str(one)): "there is nothing to replace",
        ("move", "9", "--to", "127.0.0.1:9"): "node 9 is no voter; voters are",
        ("add", str(one), "--directory", before[two]): "remove that one first",
    }
    for arguments, sentence in cases.items():
        waits = () if arguments[0] == "remove" else ("--wait", "0.2")
        said = on_quorum(cluster, *arguments, *waits)
        assert (said.code, sentence in said.err) == (1, True), said
    cluster.controller(one).kill()
    said = on_quorum(cluster, "remove", str(two), "--wait", "1")
    assert said.code == 1
    assert f"[{one}] don't hold what is committed" in said.err
    assert voters(cluster) == before
    # The dead one may go: the two that are left hold everything.
    said = on_quorum(cluster, "remove", str(one), "--output", "json")
    assert said.code == 0, said
    assert [voter["nodeId"] for voter in json.loads(said.out)["voters"]] == sorted((leader, two))
    cluster.create("by-two")
    cluster.controller(one).start()
    cluster.until(cluster.settled, "all three run")
    cluster.until(
        lambda: (cluster.status(one) or {}).get("role") == "observer",
        "it knows that it was removed",
    )
    said = on_quorum(cluster, "add", str(one))
    assert said.code == 0, said
    assert voters(cluster) == before
    cluster.create("by-three")
    cluster.check_nothing_lost()
