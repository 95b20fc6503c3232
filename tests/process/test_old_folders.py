"""The folder that a controller of an old release left: this build reads it and goes on from it."""

import json
import shutil
from pathlib import Path

import pytest

from logberg.local.cluster_file import CLUSTER_FILE
from tests.golden.folders_write import CONTROLLER, EXPECTED, FOLDER, TOPICS
from tests.process.running_cluster import RunningCluster, logberg

pytestmark = pytest.mark.process


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(FOLDER / CONTROLLER, tmp_path / CONTROLLER)
    shutil.copy(FOLDER / CLUSTER_FILE, tmp_path)
    return tmp_path


def test_replay_gives_the_state_that_the_old_release_had(folder: Path) -> None:
    (said_then,) = json.loads((FOLDER / EXPECTED).read_text())
    verified = logberg("log", "verify", str(folder / CONTROLLER), cwd=folder)
    assert verified.code == 0, verified
    replayed = logberg("log", "replay", str(folder / CONTROLLER), "--output", "json", cwd=folder)
    assert replayed.code == 0, replayed
    (said_now,) = json.loads(replayed.out)
    assert said_now["topics"] == said_then["topics"] == TOPICS
    assert said_now["stateHash"] == said_then["stateHash"]


def test_a_controller_goes_on_from_it(folder: Path) -> None:
    """It loads the journal and the checkpoint, leads, and makes a change."""
    cluster = RunningCluster(folder, controllers=1)
    try:
        cluster.start()
        topics = {f"orders-{number}" for number in range(TOPICS)}
        assert cluster.topics() == topics
        change = {"configs": [{"name": "retention.ms", "value": "1000"}]}
        answer = cluster.ask(cluster.url(1), "PATCH", "/v1/configs/topic/orders-7", change)
        assert answer.status == 200, answer
        cluster.acknowledged = sorted(topics)
        cluster.check_nothing_lost()
    finally:
        cluster.kill()
