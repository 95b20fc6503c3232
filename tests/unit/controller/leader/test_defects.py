"""A defect in one decision is answered once. The leader goes on, and keeps its leadership."""

import json

import pytest

from controller.http import call
from controller.leader import leader_duties
from controller.leader.decisions import Decision
from controller.managers.topics import TopicManager
from controller.result import ControllerResult
from ledger.batch import Provenance
from metadata.messages import DeleteTopicsRequest, Endpoint, Registration
from metadata.records import NoOpRecord
from metadata.uuids import UuidError, parse_uuid
from tests.unit.controller.cluster import Broker, Cluster

TOPIC = {"topics": [{"name": "t", "numPartitions": 1, "replicationFactor": 1}]}
UNREADABLE = "A" * 22 + "\n"


@pytest.mark.parametrize("steps", [0, 3], ids=["at once", "in slices"])
@pytest.mark.parametrize("first", [False, True], ids=["asked for", "our own"])
def test_a_defect_in_a_decision_is_answered_once_logged_and_the_leader_goes_on(steps, first):
    cluster = Cluster(on_defect=None)
    cluster.online(1)
    epoch = cluster.shared.epoch
    outcomes = []

    def fail(_image):
        yield from [None] * steps
        raise ZeroDivisionError("planted")

    decision = Decision(fail, Provenance(operation="Defect"), outcomes.append, first=first)
    cluster.processes[1].run(lambda: cluster.leader._leader.proposer.submit(decision))
    cluster.run_until(lambda: bool(outcomes))
    cluster.create_topic("after", factor=1)
    assert [outcome.code.value for outcome in outcomes] == ["UNKNOWN_SERVER_ERROR"]
    (logged,) = cluster.events("decision_failed")
    assert logged["operation"] == "Defect"
    assert logged["exc_info"]
    assert cluster.shared.epoch == epoch
    cluster.assert_equal()


def test_a_request_whose_decision_fails_is_answered_once(monkeypatch):
    cluster = Cluster(on_defect=None)
    (broker,) = cluster.online(1)
    monkeypatch.setattr(TopicManager, "create", lambda *_: 1 / 0)
    status, reply = cluster.ask("POST", "/v1/topics", TOPIC)
    assert (status, reply["code"]) == (500, "UNKNOWN_SERVER_ERROR")
    # No timer answers it once more, and the next one is made.
    broker.keep_alive(40.0)
    monkeypatch.undo()
    cluster.create_topic("t", factor=1)


def test_a_defect_behind_a_written_part_gives_up_the_epoch_and_is_answered_once(monkeypatch):
    cluster = Cluster(on_defect=None)
    cluster.online(1)
    leader, outcomes = cluster.leader, []
    writer = leader._leader.proposer._writer
    follow = writer._on_records

    def fail(_records):
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(writer, "_on_records", fail)
    decision = Decision(
        lambda _image: ControllerResult((NoOpRecord(),)),
        Provenance(operation="Defect"),
        outcomes.append,
    )
    cluster.processes[1].run(lambda: leader._leader.proposer.submit(decision))
    cluster.run(0.1)
    assert [outcome.code.value for outcome in outcomes] == ["UNKNOWN_SERVER_ERROR"]
    assert cluster.shared.leader is None
    monkeypatch.setattr(writer, "_on_records", follow)
    cluster.lead(2)
    cluster.online(2)
    cluster.create_topic("after", factor=1)
    cluster.assert_equal()


def test_a_leader_that_cannot_begin_its_epoch_does_not_stay(monkeypatch):
    cluster = Cluster(leader=None, on_defect=None)
    monkeypatch.setattr(leader_duties, "begin_epoch", lambda *_: 1 / 0)
    with pytest.raises(Exception, match="division by zero"):
        cluster.lead(1)


def test_an_id_that_only_looks_like_one_is_refused_and_its_field_named(monkeypatch):
    """The decision refuses it even if the decoder accepts it."""
    cluster = Cluster()
    with pytest.raises(UuidError):
        parse_uuid(UNREADABLE)
    request = DeleteTopicsRequest(topic_ids=(UNREADABLE,))
    monkeypatch.setattr(call, "decode", lambda *_args, **_more: request)
    status, reply = cluster.ask("DELETE", "/v1/topics", {})
    assert status == 400
    assert "topicIds" in json.dumps(reply)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"incarnation_id": UNREADABLE}, "incarnationId"),
        (
            {
                "registration": Registration(
                    endpoints=(Endpoint(name="a", host="h", port=1),), log_dirs=(UNREADABLE,)
                )
            },
            "logDirs",
        ),
    ],
)
def test_a_brokers_id_that_only_looks_like_one_is_refused(monkeypatch, changes, field):
    cluster = Cluster()
    broker = Broker(cluster, 1)
    request = broker.request(**changes)
    monkeypatch.setattr(call, "decode", lambda *_args, **_more: request)
    reply = broker.fetch()
    assert reply.error.code == "INVALID_REQUEST"
    assert field in reply.error.message
