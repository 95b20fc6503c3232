"""Causes of alerts: places of backups and of the archive that controllers can't use any more."""

import signal
from pathlib import Path
from typing import Any

from ledger.segments import segment_bases
from tests.deploy.alert_bench import FiredAlert, alert_bench
from tests.process.running_cluster import RunningCluster

BACKUP_EVERY_S = 10
SMALL: dict[str, Any] = {
    "segment_bytes": 20_000,
    "checkpoint_bytes": 20_000,
    "journal_tail_bytes": 10_000,
}


def of_places(folder: Path) -> list[FiredAlert]:
    """A place that backups can't reach, nobody who knows a backup, and an archive that is gone.

    The archive goes last, because a backup of a log that is partly archived reads it too.
    """
    place, shelf = folder / "backups", folder / "shelf"
    shelf.mkdir()
    cluster = RunningCluster(
        folder / "cluster",
        controllers=1,
        brokers=1,
        backups={"where": str(place), "every_ms": BACKUP_EVERY_S * 1000},
        archive={"to": str(shelf / "archive"), "keep_bytes": 0, "every_ms": 200},
        **SMALL,
    )
    with alert_bench(folder, cluster) as bench:
        cluster.until(lambda: list(place.glob("*.backup")), "there is a first backup")
        bench.quiet("LogbergNoBackup")
        bench.fire(
            f"put a file in the place of the folder of backups; one is due each {BACKUP_EVERY_S} s",
            lambda: [place.rename(folder / "moved"), place.write_text("")],
            "LogbergBackupFails",
            "LogbergBackupOld",
        )
        bench.fire(
            "start the controllers anew while none can reach the place of backups",
            lambda: _restart(cluster),
            "LogbergNoBackup",
        )
        cluster.until(lambda: _grown(cluster), "segments have left the node")
        bench.fire(
            "move the folder away that the archive lies in, and make changes",
            lambda: shelf.rename(folder / "away"),
            "LogbergArchiveFails",
            again=lambda: _grown(cluster),
        )
    return bench.fired


def _grown(cluster: RunningCluster) -> bool:
    """Make a change. Tell whether a segment has left the node."""
    cluster.create(f"grown-{len(cluster.acknowledged)}", partitions=40)
    names = (path.name for path in (cluster.data(1) / "log").glob("*.log"))
    return segment_bases(names)[0] > 0


def _restart(cluster: RunningCluster) -> None:
    for child in cluster.local.controllers.values():
        child.signal(signal.SIGTERM)
        assert child.wait(20.0), f"{child.name} did not stop"
        child.start()
    cluster.until(cluster.settled, "all are back")
