"""Keys of real controllers: in the log, rotated by a command, and checked from the files."""

import json
from pathlib import Path

import pytest

from tests.process.running_cluster import RunningCluster, logberg, running

pytestmark = pytest.mark.process


def keys_of(cluster: RunningCluster, folder: Path) -> list[dict]:
    said = cluster.command("quorum", "keys", "--data", str(folder), "--output", "json")
    assert said.code == 0, said
    return list(json.loads(said.out)["keys"])


def test_a_key_is_rotated_and_the_log_says_how(tmp_path: Path) -> None:
    with running(tmp_path, brokers=1, signed_head_ms=500) as cluster:
        cluster.until(lambda: len(keys_of(cluster, tmp_path)) == 3, "three keys in the log")
        before = (cluster.data(2) / "head.key").read_text()
        said = cluster.command(
            *("quorum", "rotate-key", "2", "--reason", "as each year", "--data", str(tmp_path))
        )
        assert said.code == 0, said
        cluster.until(
            lambda: (
                [each["state"] for each in keys_of(cluster, tmp_path)]
                == ["registered", "rotated", "registered"]
            ),
            "the other key",
        )
        line = keys_of(cluster, tmp_path)[1]["publicKey"]
        cluster.until(
            lambda: (cluster.data(2) / "head.pub").read_text() == f"{line}\n", "its public file"
        )
        assert (cluster.data(2) / "head.key").read_text() != before
        assert not (cluster.data(2) / "head.key.next").exists()
        made = json.loads(
            cluster.command(
                *("topics", "create", "orders", "--data", str(tmp_path), "--output", "json"),
                "--replication-factor",
                "1",
            ).out
        )

        def proved() -> bool:
            out = tmp_path / "receipt.json"
            out.unlink(missing_ok=True)
            code = cluster.command(
                *("audit", "prove", made["requestId"], "--out", str(out)),
                *("--data", str(tmp_path)),
            ).code
            return code == 0

        cluster.until(proved, "a receipt of the request")
    where = str(cluster.data(1))
    said = logberg("audit", "keys", where, cwd=tmp_path)
    assert said.code == 0, said
    assert "controller 2  rotated" in said.out
    assert "“as each year”" in said.out
    lines = logberg("audit", "keys", where, "--lines", cwd=tmp_path).out.split()
    assert line in lines
    options = [text for key in lines for text in ("--key", key)]
    checked = logberg("audit", "check-proof", "receipt.json", *options, cwd=tmp_path)
    assert checked.code == 0, checked
    assert "TOPIC_RECORD" in checked.out
    assert f"requestId: {made['requestId']}" in checked.out
