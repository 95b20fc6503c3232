"""Keeps the whole folder of a controller as an old release left it, after it was stopped in order.

    python -m tests.golden.folders_write

Rule: the old release's own processes write the folder, and its own `log replay` says what is in it.
A folder that is kept is never written anew: releases that come must read the one that is there.
"""

import json
import shutil
import tempfile
import time
from pathlib import Path

from logberg.local.cluster_file import CLUSTER_FILE
from tests.process.mixed_cluster import MixedCluster
from tests.releases.old_release import OLD

FOLDER = Path(__file__).parent / f"folder-{OLD}"
CONTROLLER = "controller-1"
EXPECTED = "expected.json"
TOPICS = 40
_SMALL = "checkpoint_bytes = 4096\nsegment_bytes = 8192\njournal_tail_bytes = 4096\n"


def write(target: Path, place: Path) -> None:
    """Run the old release in `place`, and keep what its controller left."""
    cluster = MixedCluster(place, 1, 1, old=(CONTROLLER, "broker-1"))
    config = cluster.folder / "config" / f"{CONTROLLER}.toml"
    config.write_text(_SMALL + config.read_text())
    try:
        cluster.start()
        for number in range(TOPICS):
            cluster.create(f"orders-{number}", partitions=3)
        cluster.until((cluster.data(1) / "manifest").exists, "it has a manifest")
        time.sleep(1)
        cluster.stop()
    finally:
        cluster.kill()
    said = cluster.old_command("log", "replay", str(cluster.data(1)), "--output", "json")
    assert said.code == 0, said
    target.mkdir()
    shutil.copytree(cluster.data(1), target / CONTROLLER, ignore=shutil.ignore_patterns(".lock"))
    identity = json.loads((cluster.folder / CLUSTER_FILE).read_text())
    # The paths are those of the machine that wrote it, and this build makes its own.
    identity |= {"brokers": 0, "nodes": [], "ca": "ca.crt", "tokenFile": "admin.token"}
    (target / CLUSTER_FILE).write_text(json.dumps(identity, indent=1) + "\n")
    found = [{**one, "folder": CONTROLLER} for one in json.loads(said.out)]
    (target / EXPECTED).write_text(json.dumps(found, indent=1) + "\n")


def main() -> None:
    """Write it, if it isn't there."""
    if FOLDER.exists():
        raise SystemExit(f"{FOLDER} is there already, and stays as it is")
    with tempfile.TemporaryDirectory(prefix="logberg-golden-") as place:
        write(FOLDER, Path(place))


if __name__ == "__main__":
    main()
