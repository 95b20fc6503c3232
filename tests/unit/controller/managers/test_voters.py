"""Voters are added and removed by request, in one entry with the record that says so (ADR 0081)."""

from typing import Any

import pytest

from metadata.codec import decode_records
from metadata.features import LOGBERG_VERSION, VOTER_CHANGES_FROM
from metadata.records import RequestOutcomeRecord, VotersRecord
from metadata.uuids import uuid7, uuid_text
from quorum.api import Voter, VoterChangeRefusedError
from tests.unit.controller.cluster import Cluster

OBSERVER = Voter(4, b"\4" * 16, "127.0.0.1", 19094)
ADD = {"action": "add", "nodeId": 4}
MOVE = {"action": "move", "nodeId": 2, "host": "two.example.org", "port": 9091}


@pytest.fixture
def cluster() -> Any:
    cluster = Cluster()
    cluster.shared.observers[4] = OBSERVER
    return cluster


def change(cluster: Any, body: dict[str, Any], **options: Any) -> tuple[int, Any]:
    answered: tuple[int, Any] = cluster.ask("POST", "/v1/quorum/voters", body, **options)
    return answered


def in_image(cluster: Any) -> list[int]:
    return [voter.voter_id for voter in cluster.image.quorum.voters]


def in_quorum(cluster: Any) -> list[int]:
    return [voter.node_id for voter in cluster.leader.quorum.voters()]


def test_a_voter_is_added_in_one_entry_with_its_record_and_its_answer(cluster: Any) -> None:
    status, reply = change(cluster, ADD, headers={"x-logberg-reason": "a third site"})
    assert status == 200, reply
    assert [voter["nodeId"] for voter in reply["voters"]] == [1, 2, 3, 4]
    assert in_quorum(cluster) == in_image(cluster) == [1, 2, 3, 4]
    batch = cluster.batches()[-1]
    assert [type(r) for r in decode_records(batch.records)] == [VotersRecord, RequestOutcomeRecord]
    said = batch.header.provenance
    assert (said.operation, said.principal, said.reason) == (
        "ChangeVoters",
        "User:alice",
        "a third site",
    )
    _, payloads = cluster.shared.log[cluster.shared.voters_since - 1]
    assert payloads[-1] == batch.encoded
    new = cluster.image.quorum.voters[-1]
    assert (new.voter_directory_id, new.endpoints[0].port) == (OBSERVER.directory_id, 19094)
    cluster.assert_equal()


def test_a_voter_is_removed_and_the_others_keep_what_the_log_says_of_them(cluster: Any) -> None:
    before = cluster.image.quorum.voters
    assert change(cluster, {"action": "remove", "nodeId": 3})[0] == 200
    assert cluster.image.quorum.voters == before[:2]
    assert in_quorum(cluster) == [1, 2]
    cluster.assert_equal()


def test_the_answer_names_the_voters_in_the_order_of_their_ids(cluster: Any) -> None:
    change(cluster, {"action": "remove", "nodeId": 2})
    cluster.shared.observers[2] = Voter(2, b"\2" * 16, "127.0.0.1", 19092)
    _, reply = change(cluster, {"action": "add", "nodeId": 2})
    assert [voter["nodeId"] for voter in reply["voters"]] == [1, 2, 3]


def test_a_voter_is_moved_and_only_its_address_changes(cluster: Any) -> None:
    before = cluster.image.quorum.voters
    status, reply = change(cluster, MOVE)
    assert status == 200, reply
    moved = {"nodeId": 2, "directoryId": uuid_text(b"\2" * 16), "host": "two.example.org"}
    assert reply["voters"][1] == {**moved, "port": 9091}
    one, two, three = cluster.image.quorum.voters
    assert (one, three) == (before[0], before[2])
    points = {point.name: (point.host, point.port) for point in two.endpoints}
    assert points.pop("QUORUM") == ("two.example.org", 9091)
    assert points == {p.name: (p.host, p.port) for p in before[1].endpoints if p.name != "QUORUM"}
    assert cluster.leader.quorum.voters()[1].port == 9091
    end = cluster.image.offset
    assert change(cluster, MOVE)[0] == 200
    assert cluster.image.offset == end, "it listens there already"
    cluster.assert_equal()


def test_the_same_request_again_is_answered_and_changes_nothing(cluster: Any) -> None:
    headers = {"x-logberg-request-id": change(cluster, ADD)[1]["requestId"]}
    assert change(cluster, {"action": "remove", "nodeId": 4})[0] == 200
    end = cluster.image.offset
    status, reply = change(cluster, ADD, headers=headers)
    assert (status, len(reply["voters"])) == (200, 4)
    assert in_quorum(cluster) == [1, 2, 3]
    assert cluster.image.offset == end


def test_a_voter_that_is_there_is_added_without_a_record(cluster: Any) -> None:
    end = cluster.image.offset
    status, reply = change(cluster, {"action": "add", "nodeId": 2})
    assert (status, [v["nodeId"] for v in reply["voters"]]) == (200, [1, 2, 3])
    assert cluster.image.offset == end


def test_a_dry_run_shows_the_record_and_changes_nothing(cluster: Any) -> None:
    status, reply = change(cluster, {**ADD, "dryRun": True})
    assert status == 200
    assert [record["type"] for record in reply["records"]] == ["VOTERS_RECORD"]
    assert in_quorum(cluster) == in_image(cluster) == [1, 2, 3]


OTHER = uuid_text(b"o" * 16)


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"action": "remove", "nodeId": 9}, 400, "node 9 is no voter; voters are 1 ("),
        (
            {"action": "remove", "nodeId": 2, "directoryId": OTHER},
            400,
            f"node 2 with directory {OTHER} is no voter",
        ),
        ({"action": "add", "nodeId": 9}, 409, "node 9 is not linked: start it"),
        ({"action": "add", "nodeId": 2, "directoryId": OTHER}, 400, "remove that one first"),
        ({**ADD, "directoryId": OTHER}, 400, "runs on directory"),
        ({**ADD, "directoryId": "x"}, 400, "directoryId: "),
        ({"action": "add", "nodeId": 5}, 400, "no address of node 5 is known"),
        ({"action": "demote", "nodeId": 5}, 400, "demote"),
        ({"action": "promote", "nodeId": 9}, 409, "node 9 is not linked: start it"),
        ({**MOVE, "nodeId": 9}, 400, "node 9 is no voter; voters are 1 ("),
        ({**MOVE, "directoryId": OTHER}, 400, f"node 2 with directory {OTHER} is no voter"),
        ({**MOVE, "host": "two..org"}, 400, "'two..org' is no name and no address"),
        ({**MOVE, "host": "a b"}, 400, "'a b' is no name and no address"),
        ({**ADD, "host": "x" * 64, "port": 1}, 400, "is no name and no address"),
        ({"action": "move", "nodeId": 2}, 400, "name where node 2 will listen"),
        ({**MOVE, "host": "127.0.0.1", "port": 19093}, 400, "node 3 listens at 127.0.0.1:19093"),
    ],
    ids=[
        "no voter",
        "another directory",
        "not linked",
        "votes with another directory",
        "runs on another directory",
        "no directory",
        "no address",
        "no action",
        "promoted and not linked",
        "a move of no voter",
        "a move of another directory",
        "a move to no name",
        "a move to a name with a blank",
        "a name that is too long",
        "a move to nowhere",
        "a move to another's address",
    ],
)
def test_what_is_refused_with_a_sentence(
    cluster: Any, body: dict[str, Any], status: int, said: str
) -> None:
    cluster.shared.observers[5] = Voter(5, b"\5" * 16, "", 0)
    end = cluster.image.offset
    found, reply = change(cluster, body)
    assert found == status
    assert said in reply["message"]
    assert cluster.image.offset == end
    assert in_quorum(cluster) == [1, 2, 3]


def test_a_standing_observer_is_promoted_and_not_added() -> None:
    cluster = Cluster(standing_observers=frozenset({4}))
    cluster.shared.observers[4] = OBSERVER
    status, reply = change(cluster, ADD)
    assert (status, reply["code"]) == (400, "INVALID_REQUEST")
    assert "`logberg quorum promote 4` lets it vote" in reply["message"]
    assert in_quorum(cluster) == [1, 2, 3]
    status, reply = change(cluster, {**ADD, "action": "promote"})
    assert status == 200, reply
    assert in_quorum(cluster) == in_image(cluster) == [1, 2, 3, 4]
    assert change(cluster, ADD)[0] == 200, "it votes already"


def test_the_last_voter_stays() -> None:
    cluster = Cluster(nodes=1)
    status, reply = change(cluster, {"action": "remove", "nodeId": 1})
    assert (status, reply["code"]) == (400, "INVALID_REQUEST")
    assert "the last voter" in reply["message"]


@pytest.mark.parametrize(
    ("later", "status", "code"), [(True, 409, "VOTERS_NOT_READY"), (False, 400, "INVALID_REQUEST")]
)
def test_the_quorums_refusal_is_the_answer(
    cluster: Any, *, later: bool, status: int, code: str
) -> None:
    cluster.shared.refusal = VoterChangeRefusedError("because the quorum says so", later=later)
    end = cluster.image.offset
    found, reply = change(cluster, ADD)
    assert (found, reply["code"], reply["retriable"]) == (status, code, later)
    assert reply["message"] == "because the quorum says so"
    assert cluster.image.offset == end


def test_a_refusal_between_decision_and_entry_leaves_no_trace(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_voters: Any, _payload: bytes) -> None:
        raise VoterChangeRefusedError("too late", later=True)

    monkeypatch.setattr(cluster.leader._leader.proposer._writer, "_change_voters", refuse)
    status, reply = change(cluster, ADD)
    assert (status, reply["code"], reply["message"]) == (409, "VOTERS_NOT_READY", "too late")
    assert in_image(cluster) == [1, 2, 3]
    cluster.assert_equal()


def test_below_its_level_nothing_changes() -> None:
    cluster = Cluster(initial_features={LOGBERG_VERSION: VOTER_CHANGES_FROM - 1})
    status, reply = change(cluster, {"action": "remove", "nodeId": 3})
    assert (status, reply["code"]) == (400, "UNSUPPORTED_VERSION")
    assert "logberg features upgrade logberg.version=5" in reply["message"]
    # Nor is the log's record brought up to the quorum's voters.
    del cluster.shared.voters[3]
    cluster.lead(2)
    cluster.run(1.0)
    assert in_image(cluster) == [1, 2, 3]


def test_after_the_first_level_there_is_no_way_back(cluster: Any) -> None:
    update = {
        "feature": LOGBERG_VERSION,
        "maxVersionLevel": VOTER_CHANGES_FROM - 1,
        "upgradeType": "safe_downgrade",
    }
    status, reply = cluster.ask("POST", "/v1/features", {"updates": [update]})
    assert (status, reply["code"]) == (400, "INVALID_UPDATE_VERSION")
    assert "changes of the voters" in reply["message"]


def test_a_leader_writes_the_record_again_if_the_quorum_has_other_voters(cluster: Any) -> None:
    """As when the fence skipped the batch of a committed entry of an earlier leader."""
    del cluster.shared.voters[3]
    cluster.lead(2)
    cluster.run_until(lambda: in_image(cluster) == [1, 2])
    assert cluster.batches()[-1].header.provenance.operation == "SetVoters"
    assert [e["log_level"] for e in cluster.events("voters_written_again")] == ["warning"]
    end = cluster.image.offset
    cluster.run(2.0)
    assert cluster.image.offset == end
    cluster.assert_equal()


def test_a_leader_writes_the_record_again_if_the_quorum_has_other_addresses(cluster: Any) -> None:
    """Only addresses that an entry names count: those of configurations may differ."""
    away = Voter(3, b"\3" * 16, "three.example.org", 9091)
    cluster.shared.voters[3] = away
    end = cluster.image.offset
    cluster.lead(2)
    cluster.run(2.0)
    assert "SetVoters" not in [b.header.provenance.operation for b in cluster.batches()[end:]]
    cluster.shared.voters_named = True
    cluster.lead(1)
    cluster.run_until(lambda: cluster.image.quorum.voters[2].endpoints[0].port == 9091)
    assert cluster.batches()[-1].header.provenance.operation == "SetVoters"
    cluster.assert_equal()


def test_while_a_change_waits_nothing_is_written_again(cluster: Any) -> None:
    """The pending image has the new voters before the quorum has them."""
    cluster.shared.cut(2, 3)
    replies = cluster.send("POST", "/v1/quorum/voters", ADD)
    cluster.leader._leader.voters_projection.look()
    cluster.run(0.01)
    cluster.shared.heal()
    cluster.run_until(lambda: bool(replies))
    cluster.run(1.0)
    assert replies[0].status == 200
    operations = [batch.header.provenance.operation for batch in cluster.batches()]
    assert operations.count("ChangeVoters") == 1
    assert "SetVoters" not in operations
    cluster.assert_equal()


def test_another_voter_leads_if_it_is_asked_for(cluster: Any) -> None:
    asked = uuid_text(uuid7(cluster.processes[1].clock.wall_ms(), 7))
    headers = {"x-logberg-reason": "the host is repaired", "x-logberg-request-id": asked}
    status, reply = cluster.ask("POST", "/v1/quorum/transfer", {"nodeId": 2}, headers=headers)
    assert (status, reply["nodeId"], reply["leaderEpoch"]) == (200, 2, 1)
    said = cluster.batches()[-1].header.provenance
    assert (said.operation, said.principal, said.reason) == (
        "TransferLeadership",
        "User:alice",
        "the host is repaired",
    )
    assert uuid_text(said.request_id) == asked
    cluster.run_until(lambda: cluster.controllers[2].active)
    status, reply = cluster.ask("POST", "/v1/quorum/transfer", {"nodeId": 3}, node=1)
    assert (status, reply["code"]) == (421, "NOT_CONTROLLER")


@pytest.mark.parametrize(
    ("node_id", "status", "code"), [(4, 400, "INVALID_REQUEST"), (3, 409, "VOTERS_NOT_READY")]
)
def test_who_can_not_lead_is_refused(cluster: Any, node_id: int, status: int, code: str) -> None:
    cluster.shared.cut(3)
    end = cluster.image.offset
    found, reply = cluster.ask("POST", "/v1/quorum/transfer", {"nodeId": node_id})
    assert (found, reply["code"]) == (status, code)
    cluster.run(0.5)
    assert cluster.controllers[1].active
    assert cluster.image.offset == end
