"""Real controllers lose a majority of their folders, and go on from one survivor."""

import json
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.running_cluster import RunningCluster, Said, logberg

pytestmark = pytest.mark.process
WITHIN_S = 60.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RunningCluster]:
    cluster = RunningCluster(tmp_path / "data", 3, 1, segment_bytes=4096, checkpoint_bytes=8192)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.kill()


def recover(cluster: RunningCluster, n: int, *more: str) -> Said:
    return logberg("quorum", "recover", str(cluster.data(n)), *more)


def lose_two(cluster: RunningCluster) -> tuple[int, list[int], list[str]]:
    """The survivor is frozen, the others go on for a moment, and are killed with their folders.

    The survivor stays frozen: what the others sent to it lies in its sockets, and it would read it.
    Returns the survivor, the lost ones, and topics that were acknowledged without the survivor.
    """
    for number in range(30):
        cluster.create(f"kept-{number}")
    survivor = cluster.standby()
    cluster.until(cluster.caught_up, "all hold the same")
    cluster.controller(survivor).signal(signal.SIGSTOP)
    before = len(cluster.acknowledged)
    for number in range(5):
        cluster.create(f"unseen-{number}")
    # The broker sees them, too.
    time.sleep(1.0)
    lost = [n for n in cluster.local.controllers if n != survivor]
    for n in lost:
        cluster.controller(n).kill()
        shutil.rmtree(cluster.data(n))
    unseen = cluster.acknowledged[before:]
    del cluster.acknowledged[before:]
    return survivor, lost, unseen


def kept_note(cluster: RunningCluster) -> Path:
    """Wait until the broker kept what it saw of the lost records. Returns its note about that.

    Until then its state is the one of before the recovery, whatever the broker does.
    """
    (folder,) = (path for path in cluster.folder.glob("broker-*") if path.is_dir())
    cluster.until(lambda: list(folder.glob("evidence/*.json")), "the broker kept what it saw")
    (note,) = folder.glob("evidence/*.json")
    return note


def test_one_survivor_of_three_serves_in_under_a_minute(cluster: RunningCluster) -> None:
    survivor, lost, unseen = lose_two(cluster)
    running = recover(cluster, survivor)
    assert running.code == 1
    assert "is in use by another process" in running.err

    began = time.monotonic()
    cluster.controller(survivor).kill()
    looked = recover(cluster, survivor)
    assert looked.code == 0, looked
    assert "certain: offsets 0 to" in looked.out
    names = ", ".join(map(str, lost))
    assert f"may be lost: the folders of these voters are not here: {names}" in looked.out
    assert "nothing was changed" in looked.out
    done = recover(
        cluster,
        survivor,
        "--yes",
        "--reason",
        "two disks burnt",
        "--by",
        "olga",
        "--output",
        "json",
    )
    assert done.code == 0, done
    said = json.loads(done.out)
    assert (said["generation"], said["voters"]) == (2, [survivor])
    assert said["begun"]
    held_end = said["probableEnd"]

    cluster.controller(survivor).start()
    cluster.until(lambda: cluster.status(survivor), "the survivor answers")
    cluster.create("after-the-recovery")
    took = time.monotonic() - began
    print(f"recovered and serving after {took:.1f} s")
    assert took < WITHIN_S
    topics = cluster.topics()
    assert set(cluster.acknowledged) <= topics
    assert not set(unseen) & topics, "what only the others had is lost, as it was said"

    who = logberg("audit", "who", str(cluster.data(survivor)), "quorum")
    assert "olga" in who.out
    assert "two disks burnt" in who.out
    kept = json.loads(kept_note(cluster).read_text())
    assert kept["offset"] > held_end
    assert "the cluster lost or replaced" in kept["why"]

    for n in lost:
        cluster.controller(n).start()
    cluster.until(cluster.settled, "the wiped nodes are members of the new generation")
    cluster.until(cluster.caught_up, "they hold the same")
    roles = {n: (cluster.status(n) or {})["role"] for n in cluster.local.controllers}
    assert roles == {n: "leader" if n == survivor else "observer" for n in roles}
    cluster.check_nothing_lost()


def test_wiped_nodes_vote_again_with_the_folders_that_recovery_makes(
    cluster: RunningCluster, tmp_path: Path
) -> None:
    survivor, lost, _ = lose_two(cluster)
    old = tmp_path / "old"
    cluster.controller(survivor).kill()
    shutil.copytree(cluster.data(survivor), old)
    voters = [f"--voter={survivor}", *(f"--voter={n}={cluster.data(n)}" for n in lost)]
    done = recover(cluster, survivor, *voters, "--yes", "--reason", "two disks burnt")
    assert done.code == 0, done
    for n in cluster.local.controllers:
        cluster.controller(n).start()
    kept_note(cluster)
    cluster.until(cluster.settled, "all three serve")
    cluster.create("with-three-voters")
    cluster.controller(survivor).kill()
    cluster.create("without-the-survivor")

    # The folder of before comes back: each side refuses the other.
    kept = tmp_path / "kept"
    cluster.data(survivor).rename(kept)
    shutil.copytree(old, cluster.data(survivor))
    cluster.controller(survivor).start()
    sentence = "A folder of an earlier generation may not come back"
    cluster.until(
        lambda: (
            sentence in cluster.output(f"controller-{survivor}")
            or any(sentence in cluster.output(f"controller-{n}") for n in lost)
        ),
        "somebody says why",
    )
    cluster.create("while-the-old-one-is-refused")
    cluster.controller(survivor).kill()
    shutil.rmtree(cluster.data(survivor))
    kept.rename(cluster.data(survivor))
    cluster.controller(survivor).start()
    cluster.until(cluster.settled, "the voter is back on its own folder")
    cluster.check_nothing_lost()
