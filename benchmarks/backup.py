"""`python -m benchmarks.backup` backs up a log of 1,000,000 records and goes on from the backup.

A made-up history of the controllers' own code is the log. The backup is made as `logberg backup
create --from-folder` makes it: every byte is verified, and the file is read back. Then the folders
of three controllers are restored, three real processes start on them, and the time ends when all
three have loaded their state and one leads. Exit 1 when the backup takes more than 10 s, or the
restore up to serving more than 20 s.

--records N    how long the log is (1000000)
--rounds N     how often (3); the worst round counts
--folder DIR   where; the history in it is kept, and used again
--slower X     multiply the bounds, for a machine that is slower or busy
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from audit.generated.life import CLUSTER_ID
from audit.generated.stage import made_up_key
from audit.generated.writing import write_history
from logberg.local.local_cluster import LocalCluster
from logberg.local.ports import free_port_base

BACKUP_S, SERVING_S = 10.0, 20.0
_READY_S = 120.0
_ASK_EVERY_S = 0.05


def _logberg(*arguments: str, cwd: Path) -> bytes:
    done = subprocess.run(
        [sys.executable, "-m", "logberg", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        stdout=subprocess.PIPE,
        check=True,
    )
    return done.stdout


def _history(folder: Path, records: int) -> Path:
    """Return the node's folder of a history; write the history if it isn't there."""
    place = folder / f"history-{records}"
    if not (place / "story.json").exists():
        shutil.rmtree(place, ignore_errors=True)
        began = time.monotonic()
        write_history(place, records=records)
        print(f"a history of {records:,} records was written in {time.monotonic() - began:.0f} s")
    return place / "controller-1"


def _back_up(node: Path, where: Path) -> tuple[float, Path, int]:
    began = time.monotonic()
    said = _logberg(
        *("backup", "create", "--from-folder", str(node), "--to", str(where)),
        *("--output", "json"),
        cwd=where.parent,
    )
    took = time.monotonic() - began
    made = msgspec.json.decode(said)["backup"]
    return took, where / made["name"], made["records"]


def _restore(backup: Path, folder: Path) -> tuple[float, float]:
    """Return the seconds until the folders are there, and until the cluster serves."""
    cluster = LocalCluster(folder, 3, 0, free_port_base())
    cluster.file = msgspec.structs.replace(cluster.file, cluster_id=CLUSTER_ID)
    cluster.prepare()
    cluster.write_cluster_file()
    # The history's secrets are sealed under a key of its own, which nobody needs here.
    replaced = f'cluster_key_replaces = "{made_up_key(CLUSTER_ID).id.hex()}"\n'
    for path in (folder / "config").glob("controller-*.toml"):
        path.write_text(replaced + path.read_text())
    began = time.monotonic()
    _logberg(
        *("backup", "restore", str(backup), "--config", "config/controller-1.toml"),
        *("--into", ".", "--output", "json"),
        cwd=folder,
    )
    restored = time.monotonic() - began
    try:
        for child in cluster.controllers.values():
            child.start()
        while not _all_serve(cluster):
            cluster.check_alive()
            assert time.monotonic() - began < _READY_S, "it never serves"
            time.sleep(_ASK_EVERY_S)
        return restored, time.monotonic() - began
    finally:
        cluster.stop()


def _all_serve(cluster: LocalCluster) -> bool:
    """Whether all controllers have loaded their state, and one of them leads."""
    said = [child.output.read_bytes() for child in cluster.controllers.values()]
    loaded = all(b'"event": "image_loaded"' in text for text in said)
    return loaded and any(b'"event": "controller_active"' in text for text in said)


def main() -> int:
    """Measure; exit 1 when a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--slower", type=float, default=1.0)
    given = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    backups, servings = [], []
    with tempfile.TemporaryDirectory(prefix="logberg-backup-", dir=given.folder) as name:
        folder = Path(name)
        node = _history(given.folder or folder, given.records)
        for number in range(given.rounds):
            where = folder / f"backups-{number}"
            where.mkdir()
            took, backup, records = _back_up(node, where)
            size = backup.stat().st_size
            restored, serving = _restore(backup, folder / f"cluster-{number}")
            print(
                f"{records:,} records, {size / 1e6:,.1f} MB: backed up in {took:.2f} s, "
                f"restored in {restored:.2f} s, serving after {serving:.2f} s "
                f"(load {os.getloadavg()[0]:.1f})",
                flush=True,
            )
            backups.append(took)
            servings.append(serving)
            shutil.rmtree(folder / f"cluster-{number}")
    missed = False
    for what, worst, bound in (
        ("backup", max(backups), BACKUP_S * given.slower),
        ("restore to serving", max(servings), SERVING_S * given.slower),
    ):
        held = worst <= bound
        missed = missed or not held
        print(f"{what}: {worst:.2f} s at worst, bound {bound:.0f} s: {'met' if held else 'MISSED'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
