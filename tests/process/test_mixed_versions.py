"""This build beside release 0.1.0: agents, controllers and commands of either, in one cluster.

The old release's processes are real: they run from its wheel (`tests/releases`).
"""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logberg.local.ports import free_port_base
from logberg.version import VERSION
from metadata.features import BASE, LOGBERG_VERSION, SUPPORTED
from tests.process.leftovers import nothing_is_left
from tests.process.mixed_cluster import NEW, Load, MixedCluster, mixed
from tests.process.running_cluster import PATIENCE_S, POLL_S, Said
from tests.releases.old_release import OLD, command_of, old_release, python_of

pytestmark = pytest.mark.process

CONTROLLERS = ("controller-1", "controller-2", "controller-3")
BROKERS = ("broker-1", "broker-2")


def test_the_old_release_runs_from_its_own_folder() -> None:
    """Were this build imported instead, every test below would test nothing."""
    said = "import quorate, quorum.greeting as g; print(quorate.__file__, g.__file__)"
    done = subprocess.run([*python_of(), "-c", said], capture_output=True, text=True, check=True)
    assert [Path(name).parent.parent for name in done.stdout.split()] == [old_release()] * 2


def works(cluster: MixedCluster, command: Callable[..., Said]) -> None:
    """The main commands do what they say, for people and for programs."""

    def asked(*arguments: str) -> str:
        said = command(*arguments, "--data", str(cluster.folder))
        assert said.code == 0, said
        return said.out

    asked("topics", "create", "by-command", "--partitions", "3", "--replication-factor", "2")
    assert "by-command" in asked("topics", "list")
    described = json.loads(asked("topics", "describe", "by-command", "--output", "json"))
    assert len(described["topics"][0]["partitions"]) == 3
    brokers = json.loads(asked("brokers", "list", "--output", "json"))
    assert {broker["state"] for broker in brokers["brokers"]} == {"online"}
    asked("brokers", "describe", "1")
    asked("quorum", "status")
    asked("status")
    asked("topics", "delete", "by-command")
    missing = command("topics", "describe", "by-command", "--data", str(cluster.folder))
    assert missing.code == 1, missing
    assert "UNKNOWN_TOPIC_OR_PARTITION" in missing.err


def serves_through_a_failover(cluster: MixedCluster) -> None:
    """Brokers keep their sessions when the leader is killed, and register anew when restarted."""
    with Load(cluster) as load:
        killed = cluster.leader()
        cluster.controller(killed).kill()
        cluster.leader(but=killed)
        cluster.controller(killed).start()
        cluster.until(cluster.settled, "the killed controller is back")
        cluster.until(cluster.caught_up, "it has caught up")
    assert {state for _, state in load.seen} == {"online"}
    broker = cluster.local.brokers[1]
    broker.signal(signal.SIGTERM)
    assert broker.wait(20.0)
    assert broker.exit_code == 0, broker.obituary()
    broker.start()
    cluster.until(cluster.settled, "the restarted broker is online")


def test_old_agents_and_the_old_command_line_work_with_new_controllers(tmp_path: Path) -> None:
    with mixed(tmp_path, brokers=2, old=BROKERS) as cluster:
        works(cluster, cluster.old_command)
        serves_through_a_failover(cluster)
        cluster.check_nothing_lost()


def test_new_agents_and_the_new_command_line_work_with_old_controllers(tmp_path: Path) -> None:
    with mixed(tmp_path, brokers=2, old=CONTROLLERS) as cluster:
        works(cluster, cluster.command)
        serves_through_a_failover(cluster)
        cluster.check_nothing_lost()


def features(cluster: MixedCluster) -> Any:
    """What the leader says of feature levels; a leader of the old release knows none."""
    said = cluster.command("features", "list", "--output", "json", "--data", str(cluster.folder))
    return json.loads(said.out) if said.code == 0 else {"note": said.err}


def test_a_cluster_is_upgraded_node_by_node_under_load(tmp_path: Path) -> None:
    """One controller and one agent go back on the way. Raised levels end that."""
    # The new agent meets new and old leaders, one after the other.
    with mixed(tmp_path, brokers=2, old=(*CONTROLLERS, "broker-1")) as cluster:
        began = cluster.broker_epochs()
        with Load(cluster) as load:
            for n in (1, 2):
                cluster.restart_as(cluster.controller(n), NEW)
            cluster.restart_as(cluster.controller(1), OLD)
            for n in (1, 3):
                cluster.restart_as(cluster.controller(n), NEW)
            cluster.until(lambda: features(cluster)["note"] == "", "the log has feature levels")
            assert {state for _, state in load.seen} == {"online"}
            assert cluster.broker_epochs() == began, "an agent lost its session"
            for child in cluster.local.brokers.values():
                cluster.restart_as(child, NEW)
            # Until a level is raised, an agent may go back.
            cluster.restart_as(cluster.local.brokers[1], OLD)
            cluster.restart_as(cluster.local.brokers[1], NEW)
        assert set(cluster.builds.values()) == {NEW}
        found = features(cluster)
        levels = {feature["name"]: feature["level"] for feature in found["features"]}
        assert {name: level for name, level in levels.items() if level} == dict(BASE)
        assert [node["declared"] for node in found["nodes"]] == [True] * 5
        new = {1: VERSION, 2: VERSION}
        cluster.until(lambda: cluster.said_by_agents() == new, "both agents speak version 2")
        for name in CONTROLLERS:
            # Never sent: what the old release does not know.
            assert cluster.said_by(name, "frame_refused") == []
            assert cluster.said_by(name, "greeting_refused") == []
        cluster.until(cluster.raise_levels, "the levels are raised")
        child = cluster.local.brokers[2]
        child.signal(signal.SIGTERM)
        assert child.wait(20.0)
        cluster.run_as(child, OLD)
        child.start()
        refused = f"feature logberg.version is finalised at level {SUPPORTED[LOGBERG_VERSION].high}"
        cluster.until(lambda: cluster.said_by("broker-2", refused), "the old agent is refused")
        child.kill()
        cluster.check_nothing_lost()


def test_coordination_is_refused_in_one_sentence_until_all_are_new_and_its_level_is_raised(
    tmp_path: Path,
) -> None:
    with mixed(tmp_path, brokers=1, old=("controller-1", "controller-2", "broker-1")) as cluster:
        where = ("--data", str(cluster.folder))
        put = ("coordination", "keys", "put", "k", "v", *where)
        run = ("coordination", "lock", "l", *where, "--", "echo", "ran")

        def refused(*words: str) -> None:
            for command in (put, run):
                said = cluster.command(*command)
                assert (said.code, said.out) == (1, ""), said
                assert any(word in said.err for word in words), said
                assert len(said.err.splitlines()) == 1, said

        # An old leader doesn't know the routes, a new one knows that the level is missing.
        level = "raise it with `logberg features upgrade logberg.version=4`"
        refused("these controllers are of a release without coordination", level)
        for n in (1, 2):
            cluster.restart_as(cluster.controller(n), NEW)
        cluster.until(lambda: features(cluster)["note"] == "", "the log has feature levels")
        refused(level)
        raising = ("features", "upgrade", "logberg.version=4", *where)
        said = cluster.command(*raising)
        assert said.code == 1, said
        assert "broker 1" in said.err, said
        refused(level)
        cluster.restart_as(cluster.local.brokers[1], NEW)
        cluster.until(lambda: cluster.command(*raising).code == 0, "the level is raised")
        assert cluster.command(*put).code == 0
        assert cluster.command(*run).out == "ran\n"
        lowered = cluster.command("features", "downgrade", "logberg.version=3", *where)
        assert lowered.code == 1, lowered
        assert "KeyRecord" in lowered.err, lowered


def test_a_new_cluster_with_an_old_controller_says_what_to_do_and_forms(tmp_path: Path) -> None:
    """Either the old one leads first, and the log has no levels; or a new leader waits for it."""
    cluster = MixedCluster(tmp_path, 3, 0, old=("controller-3",))
    try:
        for child in cluster.local.children:
            child.start()

        def waits_or_works() -> bool:
            cluster.check_alive()
            states = [cluster.status(n) for n in (1, 2, 3)]
            works = any(state["active"] for state in states if state)
            return works or any("these are silent: 3" in s["note"] for s in states if s)

        cluster.until(waits_or_works, "a leader waits, or the cluster works")
        cluster.restart_as(cluster.controller(3), NEW)
        cluster.until(lambda: features(cluster)["note"] == "", "the log has feature levels")
        levels = {f["name"]: f["level"] for f in features(cluster)["features"] if f["level"]}
        newest = {name: SUPPORTED[name].high for name in BASE}
        old_one_led = any(
            cluster.said_by(f"controller-{n}", "feature_levels_began") for n in (1, 2, 3)
        )
        assert levels == (dict(BASE) if old_one_led else newest)
    finally:
        cluster.kill()


def up(folder: Path, command: list[str], port_base: int, more: Callable[[], None]) -> str:
    """Run `up` in a folder without naming another, do `more` beside it, and return its output."""
    output = folder / "up.txt"
    numbers = ["--controllers", "1", "--brokers", "0", "--port-base", str(port_base)]
    with output.open("w") as said:
        process = subprocess.Popen(
            [*command, "up", *numbers],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
    try:
        until = time.monotonic() + PATIENCE_S
        while "ready: " not in output.read_text():
            assert time.monotonic() < until, output.read_text()
            assert process.poll() is None, output.read_text()
            time.sleep(POLL_S)
        more()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0, output.read_text()
    finally:
        process.kill()
        process.wait()
    return output.read_text()


def test_up_goes_on_with_the_folder_that_up_of_the_old_release_made(tmp_path: Path) -> None:
    """The default folder has another name now; an empty cluster would look like lost data."""
    port_base = free_port_base()
    new = [sys.executable, "-m", "logberg"]

    def ask() -> None:
        subprocess.run([*new, "status"], cwd=tmp_path, timeout=60, check=True)

    first = up(tmp_path, command_of(), port_base, lambda: None)
    second = up(tmp_path, new, port_base, ask)
    cluster_id = json.loads((tmp_path / "quorate-data" / "cluster.json").read_bytes())["clusterId"]
    assert f"starting cluster {cluster_id}" in first
    assert f"resuming cluster {cluster_id}" in second
    assert "./quorate-data is used" in second
    assert not (tmp_path / "logberg-data").exists()
    nothing_is_left(tmp_path)
