"""How an apply is written: the confirmed plan or none, all at once, once."""

from typing import Any

import msgspec
import pytest

from ledger.batch import SEALED
from metadata.messages import ApplyRequest, DeclaredCredential
from metadata.messages.wire import canonical
from metadata.records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    RequestOutcomeRecord,
)
from metadata.uuids import uuid7, uuid_text
from tests.unit.controller.managers.clients.running_cases import KEY
from tests.unit.controller.managers.declared.declared_cluster import DeclaredCluster

WANTED = {"topics": [{"name": "t", "partitions": 2}]}


@pytest.fixture
def cluster() -> DeclaredCluster:
    return DeclaredCluster()


def test_the_plan_that_was_confirmed_is_made_or_none(cluster: DeclaredCluster) -> None:
    plan = cluster.applied({**WANTED, "dryRun": True})["plan"]
    cluster.applied({"topics": [{"name": "t", "partitions": 1}]})
    before = cluster.offset
    status, reply = cluster.apply({**WANTED, "expectedPlan": plan})
    assert (status, reply["code"]) == (409, "PLAN_CHANGED")
    assert reply["details"] == {"field": "expectedPlan"}
    assert cluster.offset == before
    again = cluster.applied({**WANTED, "dryRun": True})
    assert again["plan"] != plan
    assert cluster.applied({**WANTED, "expectedPlan": again["plan"]})["changed"] == 1


def test_what_the_plan_is_not_about_may_change_meanwhile(cluster: DeclaredCluster) -> None:
    plan = cluster.applied({**WANTED, "dryRun": True})["plan"]
    cluster.applied({"topics": [{"name": "other"}]})
    done = cluster.applied({**WANTED, "expectedPlan": plan})
    assert (done["created"], done["plan"]) == (1, plan)


def test_a_plan_that_is_no_longer_needed_is_refused_too(cluster: DeclaredCluster) -> None:
    plan = cluster.applied({**WANTED, "dryRun": True})["plan"]
    cluster.applied(WANTED)
    status, reply = cluster.apply({**WANTED, "expectedPlan": plan})
    assert (status, reply["code"]) == (409, "PLAN_CHANGED")


def test_an_apply_may_be_conditional_on_what_it_writes(cluster: DeclaredCluster) -> None:
    cluster.applied(WANTED)
    read = cluster.offset
    cluster.applied({"topics": [{"name": "t", "configs": {"retention.ms": "5"}}]})
    body = {"topics": [{"name": "t", "configs": {"retention.ms": "6"}}]}
    for offset, status in ((read, 412), (cluster.offset, 200)):
        headers = {"x-logberg-expect-offset": str(offset)}
        assert cluster.cluster.ask("POST", "/v1/apply", body, headers=headers)[0] == status


def test_a_repeated_request_is_made_once_and_gets_the_same_answer(
    cluster: DeclaredCluster,
) -> None:
    wall = cluster.cluster.processes[1].clock.wall_ms()
    headers = {"x-logberg-request-id": uuid_text(uuid7(wall, 7))}
    replies = [cluster.cluster.ask("POST", "/v1/apply", WANTED, headers=headers) for _ in range(3)]
    assert replies[0][0] == 200
    assert replies[0][1]["created"] == 1
    assert replies == [replies[0]] * 3
    other = cluster.cluster.ask("POST", "/v1/apply", {"topics": []}, headers=headers)
    assert other[1]["code"] == "REQUEST_ID_REUSED"


def large(count: int) -> dict[str, Any]:
    """A declaration of several kinds whose records don't fit into one batch."""
    return {
        "topics": [{"name": f"t{n}", "partitions": 5} for n in range(count)],
        "quotas": [
            {
                "entity": [{"entityType": "user", "entityName": f"u{n}"}],
                "quotas": {"producer_byte_rate": 1},
            }
            for n in range(count)
        ],
    }


def test_a_large_apply_is_one_transaction_that_shows_at_its_end(cluster: DeclaredCluster) -> None:
    before = cluster.offset
    replies = cluster.cluster.send("POST", "/v1/apply", large(400))
    seen = set()
    while not replies:
        cluster.cluster.run(0.0005)
        image = cluster.cluster.image
        topics, quotas = len(image.topics.by_id), len(image.client_quotas.entities)
        seen.add((topics, quotas))
    assert seen <= {(0, 0), (400, 400)}
    reply = msgspec.json.decode(replies[0].body)
    assert (reply["created"], reply["refused"]) == (800, 0)
    assert reply["items"] == [], "the log remembers no long plan"
    written = cluster.cluster.records(before)
    assert isinstance(written[0], BeginTransactionRecord)
    assert isinstance(written[-2], RequestOutcomeRecord)
    assert isinstance(written[-1], EndTransactionRecord)
    assert len(written) == 400 * 7 + 3
    assert cluster.is_idempotent(large(400))
    cluster.cluster.assert_equal()


def test_a_large_apply_that_others_overtake_is_decided_anew(cluster: DeclaredCluster) -> None:
    """It is prepared beside others. What they write counts when it is written."""
    replies = cluster.cluster.send("POST", "/v1/apply", large(400))
    cluster.cluster.create_topic("t399", partitions=3)
    cluster.cluster.run_until(lambda: bool(replies))
    reply = msgspec.json.decode(replies[0].body)
    assert (reply["created"], reply["changed"], reply["refused"]) == (799, 1, 0)
    topic = cluster.cluster.image.topics.named("t399")
    assert len(cluster.cluster.image.topics.ids_of(topic.topic_id)) == 5
    cluster.cluster.assert_equal()


def test_the_digest_of_an_apply_does_not_help_to_guess_a_password(
    cluster: DeclaredCluster,
) -> None:
    """The log keeps the digest of a request. Without the cluster key nobody can compute it."""
    declared = cluster.cluster.leader._leader.declared
    user = DeclaredCredential("a", "SCRAM-SHA-256", 4096, b"salt", b"secret" * 5)
    request = ApplyRequest(users=(user,))
    assert declared.meaning(request) == KEY.request_mac(canonical(request))
    without_key = DeclaredCluster(cluster_key=False).cluster.leader._leader.declared
    other = ApplyRequest(users=(msgspec.structs.replace(user, salted_password=b"x" * 32),))
    assert without_key.meaning(request) == without_key.meaning(other)


def test_the_hashes_of_secrets_are_in_the_batch(cluster: DeclaredCluster) -> None:
    """An auditor who is given a secret can prove that the log meant it (extension 1)."""
    secret = {"salt": "c2FsdA==", "saltedPassword": "c2VjcmV0" * 5 + "c2U="}
    user = {"name": "a", "mechanism": "SCRAM-SHA-256", "iterations": 4096, **secret}
    assert cluster.applied({"users": [user]})["created"] == 1
    batch = next(b for b in cluster.cluster.batches() if b.header.provenance.operation == "Apply")
    assert len(msgspec.msgpack.decode(batch.header.extensions[SEALED])) == 2


def test_during_a_move_the_declared_replicas_are_those_behind_it(cluster: DeclaredCluster) -> None:
    cluster.applied({"topics": [{"name": "t", "assignments": [[1, 2]]}]})
    move = {"topic": "t", "partition": 0, "replicas": [1, 3]}
    status, _ = cluster.cluster.ask("POST", "/v1/reassignments", {"partitions": [move]})
    assert status == 200
    assert cluster.cluster.partition("t").moving
    (topic,) = cluster.export(assignments="true")["topics"]
    assert (topic["replicationFactor"], topic["assignments"]) == (2, [[1, 3]])
    assert cluster.is_idempotent({"topics": [{"name": "t", "assignments": [[1, 3]]}]})
    assert cluster.is_idempotent({"topics": [{"name": "t", "replicationFactor": 2}]})


@pytest.mark.parametrize(
    "declared", [{"replicationFactor": 3}, {"assignments": [[1, 3]]}], ids=lambda d: next(iter(d))
)
def test_a_refused_move_names_the_command_that_moves(
    cluster: DeclaredCluster, declared: dict[str, Any]
) -> None:
    cluster.applied({"topics": [{"name": "t", "assignments": [[1, 2]]}]})
    _, reply = cluster.apply({"topics": [{"name": "t", **declared}]})
    (item,) = reply["items"]
    assert "moves no replicas. Move them with `logberg reassign`" in item["error"]["message"]


def test_configs_of_a_broker_that_is_gone_stand_in_no_prunes_way(cluster: DeclaredCluster) -> None:
    """Nobody can change them until the broker comes back."""
    configs = {"resourceType": "broker", "configs": {"log.cleaner.threads": "2"}}
    both = [{**configs, "resourceName": name} for name in ("2", "3")]
    assert cluster.applied({"configs": both})["changed"] == 2
    query = {"force": "true"}
    assert cluster.cluster.ask("DELETE", "/v1/brokers/3", query=query)[0] == 200
    done = cluster.applied({"prune": ["configs"]})
    assert (done["changed"], done["refused"]) == (1, 0)
    assert cluster.is_idempotent({"prune": ["configs"]})
