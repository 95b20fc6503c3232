"""A log that names other voters than the quorum has gets a record that names the right ones."""

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.altered_build import altered_build, run_with
from tests.process.running_cluster import RunningCluster
from tests.process.test_voters import on_quorum, voters

pytestmark = pytest.mark.process


def named_in_the_log(cluster: RunningCluster, n: int) -> list[tuple[str, str, list[int]]]:
    """Who wrote voters, by which operation, and which, as controller n's log has it."""
    said = cluster.command("log", "dump", str(cluster.data(n)), "--output", "json")
    assert said.code == 0, said
    found: list[tuple[str, str, list[int]]] = []
    for line in said.out.splitlines():
        batch: dict[str, Any] = json.loads(line)
        for record in batch.get("records", ()):
            if record["type"] == "VOTERS_RECORD":
                ids = sorted(voter["voterId"] for voter in record["data"]["voters"])
                found.append((batch["principal"], batch["operation"], ids))
    return found


def test_a_leader_writes_the_voters_again_that_an_earlier_one_wrote_wrongly(
    tmp_path: Path,
) -> None:
    cluster = RunningCluster(tmp_path / "cluster", 3, 0)
    wrong = altered_build(
        tmp_path / "build",
        (
            "controller/managers/voters.py",
            "return set_voters(image, after)._replace(reply=reply, voters=after)",
            "return set_voters(image, before)._replace(reply=reply, voters=after)",
        ),
        # It would notice by itself.
        (
            "controller/leader/voters_projection.py",
            "return quorums.settled and differs(image, quorums)",
            "return False",
        ),
    )
    for child in cluster.local.controllers.values():
        run_with(child, wrong)
    try:
        cluster.start()
        leader = cluster.leader()
        sound, removed = (n for n in cluster.local.controllers if n != leader)
        said = on_quorum(cluster, "remove", str(removed))
        assert said.code == 0, said
        assert sorted(voters(cluster)) == sorted((leader, sound))
        *_, (_, operation, named) = named_in_the_log(cluster, leader)
        assert (operation, named) == ("ChangeVoters", [1, 2, 3]), "the log names the old ones"
        child = cluster.controller(sound)
        child.signal(signal.SIGTERM)
        assert child.wait(20.0)
        run_with(child, [sys.executable, "-m", "logberg"])
        child.start()
        cluster.until(cluster.settled, "the sound build is back")
        said = on_quorum(cluster, "transfer", str(sound))
        assert said.code == 0, said
        cluster.until(
            lambda: '"event": "voters_written_again"' in cluster.output(f"controller-{sound}"),
            "the sound one writes the voters again",
        )
        newest = named_in_the_log(cluster, sound)[-1]
        assert newest == (f"Controller:{sound}", "SetVoters", sorted((leader, sound)))
        cluster.stop()
    finally:
        cluster.kill()
