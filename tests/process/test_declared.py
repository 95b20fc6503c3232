"""A declared state on real processes: a plan, an apply, drift, an export, and the way back."""

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.process.running_cluster import Said, running

pytestmark = [pytest.mark.process, pytest.mark.slow]
STATE = """\
topics:
  - {name: orders, partitions: 4, replicationFactor: 2, configs: {retention.ms: 604800000}}
  - {name: audit, partitions: 1, replicationFactor: 2}
quotas:
  - {entity: {user: alice}, quotas: {producer_byte_rate: 1048576}}
acls:
  - {principal: User:alice, operation: READ, resourceType: TOPIC, resourceName: orders}
users:
  - {name: alice, password: {file: alice.password}}
"""
PLAN = """\
   kind    name                                               what                from  to
+  topic   orders                                             partitions          -     4
+  topic   orders                                             replicationFactor   -     2
+  topic   orders                                             retention.ms        -     604800000
+  topic   audit                                              partitions          -     1
+  topic   audit                                              replicationFactor   -     2
+  quotas  user=alice                                         producer_byte_rate  -     1048576
+  acl     User:alice ALLOW READ TOPIC:orders LITERAL from *
+  user    alice SCRAM-SHA-512                                iterations          -     8192
+  user    alice SCRAM-SHA-512                                password            -     (set)
5 to create, 0 to change, 0 to remove, 0 as declared
"""
SAME = "0 to create, 0 to change, 0 to remove, 5 as declared\n"


def command(cluster: Any, *arguments: str) -> Said:
    """Run a command within the cluster's folder."""
    said: Said = cluster.command(*arguments, "--data", ".")
    return said


def at_terminal(cluster: Any, answer: str, *arguments: str) -> str:
    """Run a command in a terminal, answer its question, and return what it shows."""
    ours, its = pty.openpty()
    command = [sys.executable, "-m", "logberg", *arguments, "--data", "."]
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, cwd=cluster.folder) as asked:
        os.close(its)
        os.write(ours, f"{answer}\n".encode())
        said = b""
        # A terminal whose other end is closed is an error.
        with suppress(OSError):
            while piece := os.read(ours, 65536):
                said += piece
        asked.wait(30)
    os.close(ours)
    return said.decode()


def applies(cluster: Any) -> list[dict[str, Any]]:
    """Return the batches of applies, as the log has them."""
    leader = cluster.url(cluster.leader())
    batches: list[dict[str, Any]] = cluster.ask(
        leader, "GET", "/v1/log?offset=0&format=json&maxBytes=1000000"
    ).body["batches"]
    return [batch for batch in batches if batch["operation"] == "Apply"]


def test_a_plan_an_apply_drift_and_the_way_back(tmp_path: Path) -> None:
    with running(tmp_path, controllers=3, brokers=2) as cluster:
        (cluster.folder / "state.yaml").write_text(STATE)
        (cluster.folder / "alice.password").write_text("geheim\n")

        shown = command(cluster, "diff", "-f", "state.yaml")
        assert (shown.code, shown.out) == (1, PLAN), shown
        unasked = command(cluster, "apply", "-f", "state.yaml")
        assert unasked.code == 1
        assert "--yes" in unasked.err
        assert applies(cluster) == []

        done = command(cluster, "apply", "-f", "state.yaml", "--yes", "--reason", "a new team")
        assert done.code == 0, done
        assert done.out.startswith(PLAN + "applied: 5 created, 0 changed, 0 removed (offset ")
        (batch,) = applies(cluster)
        assert batch["reason"] == "a new team"
        assert "geheim" not in json.dumps(batch)
        # Two topics with five partitions and a config, a quota, an entry, a credential, the answer.
        assert len(batch["records"]) == 12

        # Somebody at a terminal is asked.
        more = cluster.folder / "more.yaml"
        more.write_text("topics: [{name: asked, replicationFactor: 1}]\n")
        assert "nothing is applied" in at_terminal(cluster, "n", "apply", "-f", "more.yaml")
        assert "asked" not in cluster.topics()
        assert "applied: 1 created" in at_terminal(cluster, "y", "apply", "-f", "more.yaml")
        assert command(cluster, "topics", "delete", "asked").code == 0

        again = command(cluster, "apply", "-f", "state.yaml", "--yes")
        assert (again.code, again.out) == (0, SAME), again
        assert len(applies(cluster)) == 2

        assert command(cluster, "configs", "set", "topic", "orders", "retention.ms=5").code == 0
        drift = command(cluster, "diff", "-f", "state.yaml")
        assert drift.code == 1
        assert "~  topic  orders  retention.ms  5     604800000" in drift.out

        exported = command(cluster, "export")
        assert exported.code == 0
        (cluster.folder / "exported.yaml").write_text(exported.out)
        same = command(cluster, "diff", "-f", "exported.yaml", "--prune")
        assert (same.code, same.out) == (0, SAME), same

        (cluster.folder / "bad.yaml").write_text(STATE.replace("4,", "3,").replace("READ", "REED"))
        bad = command(cluster, "apply", "-f", "bad.yaml", "--yes")
        assert bad.code == 1
        assert "bad.yaml:2: topic orders: " in bad.err
        assert "bad.yaml:7: acl User:alice" in bad.err
        refused = command(cluster, "diff", "-f", "bad.yaml")
        assert refused.code == 2
        assert "bad.yaml:7: acl User:alice" in refused.err
        (cluster.folder / "fewer.yaml").write_text("topics: [{name: orders, partitions: 1}]")
        fewer = command(cluster, "diff", "-f", "fewer.yaml")
        assert fewer.code == 1
        assert "an apply would be refused: fewer.yaml:1: topic orders: " in fewer.err
        assert len(applies(cluster)) == 2

        (cluster.folder / "none.yaml").write_text("topics: []\nquotas: []\nacls: []\nusers: []\n")
        gone = command(cluster, "apply", "-f", "none.yaml", "--prune", "--delete-topics", "--yes")
        assert gone.code == 0, gone
        assert "applied: 0 created, 0 changed, 5 removed" in gone.out
        assert cluster.topics() == set()
        cluster.check_nothing_lost()
