"""Rights on real processes: a new cluster of `logberg up`, roles, refusals, and the reminders."""

import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from logberg.local.ports import free_port_base
from tests.process.running_cluster import Said, logberg
from tests.process.test_up import Up, piped

pytestmark = pytest.mark.process


def as_alice(up: Up, *arguments: str) -> Said:
    """Ask with alice's own token."""
    token = up.folder / "tokens" / "User-alice.token"
    return logberg(*arguments, "--data", str(up.folder), "--token-file", str(token))


def status_of(up: Up, path: str, token: str = "") -> int:
    """Ask a controller without a certificate, and return the status of its answer."""
    url = next(node["url"] for node in up.file["nodes"] if node["role"] == "controller")
    headers = {"authorization": f"Bearer {token}"} if token else {}
    context = ssl.create_default_context(cafile=up.file["ca"])
    try:
        request = urllib.request.Request(url + path, headers=headers)
        with urllib.request.urlopen(request, context=context, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_people_do_only_what_their_role_allows(tmp_path: Path) -> None:
    arguments = ("--brokers", "1", "--controllers", "1", "--token", "User:alice")
    port_base = str(free_port_base())
    with piped(tmp_path / "c", *arguments, "--port-base", port_base) as up:
        up.says("ready: 1 controllers, 1 brokers")
        up.create("orders")
        brokers = up.asked("brokers", "list")["brokers"]
        assert [broker["state"] for broker in brokers] == ["online"]

        refused = as_alice(up, "topics", "create", "mine", "--replication-factor", "1")
        assert refused.code == 1
        assert "User:alice may not create topics: it lacks CREATE on TOPIC mine" in refused.err
        assert as_alice(up, "status").code != 0
        plan = as_alice(up, "topics", "delete", "orders", "--dry-run")
        assert "it lacks DELETE on TOPIC orders" in plan.err

        said = up.command("acls", "role", "grant", "operator", "User:alice").out
        assert said.startswith("User:alice is operator: 13 entries added")
        created = as_alice(up, "topics", "create", "mine", "--replication-factor", "1")
        assert created.code == 0, created
        refused = as_alice(up, "acls", "role", "grant", "admin", "User:alice")
        assert "it lacks ALTER on CLUSTER kafka-cluster" in refused.err
        roles = up.asked("acls", "role", "list")["roles"]
        assert [each["role"] for each in roles] == ["viewer", "operator"]

        up.command("acls", "role", "revoke", "operator", "User:alice")
        refused = as_alice(up, "topics", "create", "more", "--replication-factor", "1")
        assert "it lacks CREATE on TOPIC more" in refused.err
        assert as_alice(up, "topics", "list").code == 0, "the role viewer is left"

        assert status_of(up, "/health/ready") == 200
        assert status_of(up, "/v1/topics") == 401
        assert (
            status_of(up, "/v1/log", (tmp_path / "c/tokens/User-alice.token").read_text().strip())
            == 403
        )
        reminded = "User:admin of the first start may do everything"
        doctor = logberg("doctor", "--data", str(up.folder), "--output", "json")
        assert reminded in [check["found"] for check in json.loads(doctor.out)["checks"]]
        assert "User:admin, the administrator of the first start" in up.command("status").out
        output = (tmp_path / "c/output/controller-1.log").read_text()
        lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        told = [line for line in lines if line["event"] == "access_refused"]
        assert {line["who"] for line in told} == {"User:alice"}
        assert "CREATE on TOPIC mine" in {line["lacks"] for line in told}
        assert "authorization_not_enforced" not in {line["event"] for line in lines}
