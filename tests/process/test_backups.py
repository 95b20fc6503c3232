"""Backups of real clusters: by schedule, by command, and a cluster that goes on from one."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.process.running_cluster import RunningCluster, running

pytestmark = pytest.mark.process


def metric(cluster: RunningCluster, n: int, name: str) -> float | None:
    text = cluster.ask(cluster.url(n), "GET", "/metrics").body.decode()
    values = [line.split()[-1] for line in text.splitlines() if line.startswith(f"{name} ")]
    return float(values[0]) if values else None


def backup(cluster: RunningCluster, *arguments: str) -> Any:
    said = cluster.command("backup", *arguments, "--data", ".", "--output", "json")
    assert said.code == 0, said
    return json.loads(said.out)


def test_a_lost_cluster_goes_on_from_its_backup(tmp_path: Path) -> None:
    """All folders are lost. What the backup held is there, and new changes are taken."""
    with running(tmp_path / "cluster", 3, 1) as cluster:
        for number in range(5):
            cluster.create(f"before-{number}")
        made = backup(cluster, "create", "--to", str(tmp_path / "backups"))["backup"]
        leader = cluster.leader()
        assert made["source"] != cluster.url(leader), "a standby sends it"
        kept = list(cluster.acknowledged)
        cluster.create("after-the-backup")
        cluster.stop()
        old = tmp_path / "old"
        for n in (1, 2, 3):
            shutil.move(cluster.data(n), old / f"controller-{n}")
        said = cluster.command(
            *("backup", "restore", str(tmp_path / "backups" / made["name"])),
            *("--config", "config/controller-1.toml", "--into", ".", "--reason", "burnt"),
        )
        assert said.code == 0, said
        again = cluster.command(
            *("backup", "restore", str(tmp_path / "backups" / made["name"])),
            *("--config", "config/controller-1.toml", "--into", "."),
        )
        assert again.code == 1
        assert "nothing is restored over it" in again.err
        for child in cluster.local.children:
            child.start()
        # The broker held more than was restored. It takes the state of the new generation.
        cluster.until(cluster.settled, "the restored cluster serves")
        cluster.acknowledged = kept
        assert cluster.topics() == set(kept)
        cluster.create("in-the-new-generation")
        status = cluster.status(cluster.leader())
        assert status is not None
        assert status["leaderEpoch"] > made["epoch"] + 1000
        # A controller of the generation before is refused by name.
        cluster.controller(3).kill()
        shutil.move(cluster.data(3), tmp_path / "new-3")
        shutil.move(old / "controller-3", cluster.data(3))
        cluster.controller(3).start()
        cluster.until(
            lambda: "the cluster was recovered" in cluster.output("controller-3"),
            "the two generations refuse each other",
        )
        cluster.create("without-the-old-one")
        cluster.controller(3).kill()
        shutil.rmtree(cluster.data(3))
        shutil.move(tmp_path / "new-3", cluster.data(3))
        cluster.controller(3).start()
        cluster.until(cluster.settled, "the third one is back")
        cluster.check_nothing_lost()


def test_a_standby_makes_the_scheduled_backups_and_the_leader_when_it_is_alone(
    tmp_path: Path,
) -> None:
    where = tmp_path / "backups"
    settings: dict[str, Any] = {"backups": {"where": str(where), "every_ms": 40_000, "keep": 2}}
    with running(tmp_path / "cluster", 3, 1, **settings) as cluster:
        cluster.create("a")
        cluster.until(lambda: list(where.glob("*.backup")), "a backup is made")
        leader = cluster.leader()

        def makers() -> list[int]:
            outputs = {n: cluster.output(f"controller-{n}") for n in (1, 2, 3)}
            return [n for n, output in outputs.items() if '"event": "backup_made"' in output]

        cluster.until(makers, "somebody says that it made it")
        assert leader not in makers()
        for n in (1, 2, 3):
            cluster.until(
                lambda n=n: metric(cluster, n, "logberg_backup_age_seconds") is not None,
                f"controller {n} knows of them",
            )
        cluster.stop()
    settings = {"backups": {"where": str(tmp_path / "of-one"), "every_ms": 1_000}}
    with running(tmp_path / "lone", 1, 1, **settings) as lone:
        lone.create("a")
        lone.until(lambda: list((tmp_path / "of-one").glob("*.backup")), "the leader made one")
        lone.stop()
    assert "backup_failed" not in cluster.output("controller-1")
