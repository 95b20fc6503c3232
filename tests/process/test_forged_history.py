"""All disks of a real cluster are rewritten; broker and witness don't adopt that history."""

import json
import shutil
from pathlib import Path

import pytest

from ledger.merkle.heads import TreeHead, believed_head
from ledger.merkle.notes import SignedNote
from tests.process.running_cluster import RunningCluster, logberg
from tests.process.test_witness import RunningWitness, witnessed

pytestmark = pytest.mark.process
ALL = (1, 2, 3)
QUOTA = {"key": "producer_byte_rate", "value": 1000.0}


def head_of(note: str) -> TreeHead:
    return TreeHead.parse(SignedNote.parse(note.encode()).text)


def kept_size(cluster: RunningCluster) -> int:
    """Batches under the newest head that the broker's agent has on disk."""
    path = cluster.folder / "broker-1" / "heads.json"
    if not path.exists():
        return 0
    head = json.loads(path.read_text())["head"]
    return head_of(head).size if head else 0


def agent(cluster: RunningCluster) -> dict:
    """What the broker's agent says of itself."""
    try:
        answer = cluster.ask(cluster.local.agent_url(1), "GET", "/v1/agent")
    except OSError:
        return {}
    found: dict = answer.body
    return found


def set_quotas(cluster: RunningCluster, count: int) -> None:
    """Write batches that need no broker."""
    leader = cluster.leader()
    for number in range(count):
        entity = [{"entityType": "user", "entityName": f"forged-{number}"}]
        body = {"entries": [{"entity": entity, "operations": [QUOTA]}]}
        answer = cluster.ask(cluster.url(leader), "POST", "/v1/quotas", body)
        assert answer.status == 200, answer


def test_a_history_that_was_rewritten_on_all_disks_is_not_adopted(tmp_path: Path) -> None:
    witness = RunningWitness(tmp_path / "w")
    cluster, keys = witnessed(
        tmp_path / "c",
        signed_head_ms=300,
        of_brokers={"head_check_ms": 500},
        witnesses={
            "servers": [{"url": witness.url, "key": witness.key.text}],
            "places": [{"to": str(tmp_path / "drop"), "every_ms": 300}],
        },
    )
    witness.know([key.text for key in keys])
    origin = keys[0].name
    try:
        witness.begin()
        cluster.start()
        for number in range(5):
            cluster.create(f"true-{number}")
        size = cluster.until(lambda: kept_size(cluster), "the agent keeps a head")
        for number in range(5):
            cluster.create(f"more-{number}")
        cluster.until(lambda: kept_size(cluster) >= size + 3, "the agent keeps a newer head", 20)
        cluster.until(lambda: witness.size(origin) >= size + 3, "the witness has it", 20)
        kept = kept_size(cluster)
        cluster.stop()
        # The attacker has all disks, and all keys on them. Their history is as long as they like.
        for n in ALL:
            folder = cluster.data(n)
            folder.rename(tmp_path / f"true-{n}")
            folder.mkdir(mode=0o700)
            shutil.copy2(tmp_path / f"true-{n}" / "head.key", folder / "head.key")
            cluster.controller(n).start()
        cluster.leader()
        set_quotas(cluster, kept + 10)
        cluster.local.brokers[1].start()
        said = cluster.until(
            lambda: found if "forged" in ((found := agent(cluster)).get("differs") or "") else {},
            "the agent says what it found",
        )
        assert (said["state"], said["serving"], said["ready"]) == ("fenced", False, False)
        evidence = cluster.folder / "broker-1" / "evidence"
        # The agent writes the evidence beside its work, and its status may be the first to say so.
        cluster.until(lambda: list(evidence.glob("heads-*.why")), "the evidence is on disk")
        (theirs,) = evidence.glob("heads-*.theirs")
        (ours,) = evidence.glob("heads-*.kept")
        for path in (theirs, ours):
            believed_head(SignedNote.parse(path.read_bytes()), origin, keys)
        assert head_of(ours.read_text()).size >= kept
        # It stays so through a restart.
        cluster.local.brokers[1].kill()
        cluster.local.brokers[1].start()
        cluster.until(lambda: agent(cluster).get("differs"), "it still says so")
        assert agent(cluster)["state"] in ("fenced", "offline")
        # The witness cosigned nothing of it, and the controllers say that it has another history.
        before = witness.size(origin)
        names = [f"controller-{n}" for n in ALL]
        cluster.until(
            lambda: any("witness_contradicts" in cluster.output(name) for name in names),
            "a controller says it",
        )
        assert witness.size(origin) == before
        cluster.stop()
    finally:
        cluster.kill()
        witness.child.kill()
    options = [text for key in keys for text in ("--key", key.text)]
    drop = str(tmp_path / "drop")
    checked = logberg("audit", "check-heads", str(tmp_path / "true-1"), "--kept", drop, *options)
    assert checked.code == 0, checked
    assert "RIGHT" in checked.out
    wrong = logberg(
        *("audit", "check-heads", str(cluster.data(1)), "--kept", drop, "--output", "json"),
        *options,
    )
    assert wrong.code == 1, wrong
    (found,) = json.loads(wrong.out).values()
    assert found["firstWrongOffset"] is not None
