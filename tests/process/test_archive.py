"""Old segments of a real cluster move to an archive, and are read back from there."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ledger.segments import segment_bases
from tests.process.running_cluster import RunningCluster, running
from tests.process.test_backups import metric

pytestmark = pytest.mark.process

SETTINGS: dict[str, Any] = {
    "segment_bytes": 20_000,
    "checkpoint_bytes": 20_000,
    "journal_tail_bytes": 10_000,
}


def local(cluster: RunningCluster, n: int) -> list[int]:
    return segment_bases(path.name for path in (cluster.data(n) / "log").glob("*.log"))


def verified(cluster: RunningCluster, n: int) -> Any:
    said = cluster.command("log", "verify", str(cluster.data(n)), "--output", "json")
    assert said.code == 0, said
    return json.loads(said.out)


def test_old_segments_move_to_a_folder_and_are_read_back(tmp_path: Path) -> None:
    """By an audit of the folder, by the log over HTTP, and for a broker that joins late."""
    where = tmp_path / "archive"
    archive = {"to": str(where), "keep_bytes": 0, "every_ms": 200}
    with running(tmp_path / "cluster", 3, 1, archive=archive, **SETTINGS) as cluster:
        late = cluster.local.children[-1]
        late.kill()
        number = 0

        def moved() -> bool:
            nonlocal number
            cluster.create(f"topic-{number}", partitions=40)
            number += 1
            return all(local(cluster, n)[0] > 0 for n in (1, 2, 3))

        cluster.until(moved, "segments have left all nodes")
        for n in (1, 2, 3):
            assert (metric(cluster, n, "logberg_archived_bytes") or 0) > 0
        # An audit of a node's folder reads the archive too, and so does one over HTTP.
        report = verified(cluster, 1)
        assert report["ok"], report
        assert report["nodes"][0]["historyFrom"] == 0
        answer = cluster.ask(cluster.url(2), "GET", "/v1/log?offset=0&format=json")
        assert answer.status == 200
        assert answer.body["offset"] == 0
        assert answer.body["batches"]
        who = cluster.command("audit", "who", str(cluster.data(1)), "topic:topic-0")
        assert who.code == 0, who
        dump = cluster.command("log", "dump", str(cluster.data(3)), "--to", "1")
        assert dump.code == 0, dump
        # The broker has missed all of it.
        late.start()
        cluster.until(cluster.settled, "the late broker serves")
        assert set(cluster.acknowledged) <= cluster.topics()
        # A node whose disk is gone fetches nothing of what is archived.
        victim = cluster.standby()
        cluster.controller(victim).kill()
        shutil.rmtree(cluster.data(victim))
        cluster.controller(victim).start()
        cluster.until(
            lambda: '"event": "history_found_archived"' in cluster.output(f"controller-{victim}"),
            "the wiped node finds its history in the archive",
        )
        cluster.until(
            lambda: verified(cluster, victim)["nodes"][0]["historyFrom"] == 0, "all of it is found"
        )
        # The archive is gone: a sentence, and everything else goes on.
        where.rename(tmp_path / "away")
        said = cluster.command("log", "verify", str(cluster.data(1)))
        assert said.code == 1
        assert "can't be read" in said.err
        assert "LOGBERG_ARCHIVE" in said.err
        cluster.create("without-an-archive")
        (tmp_path / "away").rename(where)
        cluster.check_nothing_lost()
        # A flipped byte is named.
        first = where / f"{0:020d}.log"
        content = bytearray(first.read_bytes())
        content[5_000] ^= 1
        first.write_bytes(content)
        said = cluster.command("log", "verify", str(cluster.data(1)))
        assert said.code == 1
        assert f"{first}, byte " in said.err
