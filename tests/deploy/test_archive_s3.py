"""Three controllers share an archive in object storage, which is gone for a while.

The server is moto's, over real HTTP. `tests/process/test_archive.py` does the same with a folder.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.object_store import ObjectStore, object_store
from tests.process.running_cluster import RunningCluster, running
from tests.process.test_archive import SETTINGS, local, verified

pytestmark = [
    pytest.mark.skipif(os.environ.get("LOGBERG_KIT") != "1", reason="opt-in: `make kit`"),
    pytest.mark.process,
    pytest.mark.slow,
]

NODES = (1, 2, 3)


def archived(store: ObjectStore) -> list[str]:
    return [path.rpartition("/")[2] for path in store.names("history/log")]


def ask_to_move(cluster: RunningCluster) -> tuple[int, Any, str]:
    said = cluster.command("log", "archive", "run", "--data", ".", "--output", "json")
    return said.code, json.loads(said.out or "[]"), said.err


def grow(cluster: RunningCluster, segments: int) -> None:
    """Make changes until each controller has so many segments."""

    def grown() -> bool:
        cluster.create(f"topic-{len(cluster.acknowledged)}", partitions=40)
        return all(len(local(cluster, n)) >= segments for n in NODES)

    cluster.until(grown, f"each controller has {segments} segments")


def test_segments_move_to_object_storage_that_is_gone_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with object_store() as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        where = f"s3://history/log?endpoint_override={store.endpoint}&scheme=http&region=us-east-1"
        # A node's folder names the archive without the URL's options; audits need them.
        monkeypatch.setenv("LOGBERG_ARCHIVE", where)
        archive = {"to": where, "keep_bytes": 0, "every_ms": 3_600_000}
        with running(tmp_path / "cluster", 3, 1, archive=archive, **SETTINGS) as cluster:
            # They move when somebody asks, and only then.
            grow(cluster, 6)
            assert archived(store) == []
            code, replies, err = ask_to_move(cluster)
            assert code == 0, err
            assert [reply["nodeId"] for reply in replies] == [1, 2, 3]
            assert all(reply["segments"] > 0 and reply["note"] for reply in replies)
            assert all(local(cluster, n)[0] > 0 for n in NODES)
            here = archived(store)
            assert here
            assert all(name.endswith(".log") for name in here), "no part is left"
            # What is gone from the disks is read from there.
            assert verified(cluster, 1)["nodes"][0]["historyFrom"] == 0
            answer = cluster.ask(cluster.url(2), "GET", "/v1/log?offset=0&format=json")
            assert (answer.status, answer.body["offset"]) == (200, 0)

            with store.away():
                began = {n: local(cluster, n)[0] for n in NODES}
                grow(cluster, 6)
                code, replies, err = ask_to_move(cluster)
                assert (code, replies) == (1, [])
                assert err.count("the archive s3://history/log") == 3, err
                assert err.count("can't be used") == 3, err
                # Controller 3 has read nothing back so far.
                answer = cluster.ask(cluster.url(3), "GET", "/v1/log?offset=0&format=json")
                assert answer.status >= 500
                assert "the archive s3://history/log" in answer.body["message"]
                assert "can't be used" in answer.body["message"]
                said = cluster.command("log", "verify", str(cluster.data(3)))
                assert said.code == 1
                assert "can't be read" in said.err
                assert {n: local(cluster, n)[0] for n in NODES} == began, "nothing was removed"
                cluster.create("while-it-was-gone")

            code, replies, err = ask_to_move(cluster)
            assert code == 0, err
            assert all(reply["segments"] > 0 for reply in replies)
            assert set(archived(store)) > set(here)
            answer = cluster.ask(cluster.url(3), "GET", "/v1/log?offset=0&format=json")
            assert (answer.status, answer.body["offset"]) == (200, 0)
            who = cluster.command("audit", "who", str(cluster.data(3)), "topic:topic-0")
            assert who.code == 0, who
            cluster.check_nothing_lost()
