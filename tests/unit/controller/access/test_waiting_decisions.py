"""What waits for its turn is judged by the entries of its turn, also where no user asks."""

from typing import Any

import pytest

from controller.leader.decisions import Decision
from controller.result import ControllerResult
from ledger.batch import Provenance
from metadata.messages import WantedState
from metadata.records import AccessControlEntryRecord, AclOperation, AclPermissionType
from metadata.records import AclResourceType as Kind
from metadata.uuids import uuid_text
from runtime.http.requests import Caller
from tests.unit.controller.access.test_guard import entry, made
from tests.unit.controller.cluster import Broker

pytestmark = pytest.mark.simulation

BROKER = Caller("Broker:2", "certificate", "10.0.0.2")
ALICE = Caller("User:alice", "token", "10.0.0.7")
DIRECTORY, OTHER = b"d" * 16, b"e" * 16


def denial(principal: str, operation: AclOperation, name: str) -> AccessControlEntryRecord:
    return entry(operation, name, Kind.CLUSTER, principal, AclPermissionType.DENY, number=9)


def denied_before_its_turn(cluster: Any, denied: AccessControlEntryRecord) -> None:
    """Let the next decisions wait, behind one that takes a right away."""
    cluster.hold_the_turn()
    result = ControllerResult((denied,))
    decision = Decision(
        lambda _image: result, Provenance(operation="Test"), lambda _: None, first=True
    )
    cluster.processes[1].run(lambda: cluster.leader._leader.proposer.submit(decision))


def registered(cluster: Any) -> Any:
    broker = Broker(cluster, 2, log_dirs=(DIRECTORY, OTHER))
    replies = broker.send(WantedState.FENCED, caller=BROKER)
    cluster.run_until(lambda: bool(replies))
    assert broker.take(replies[0]).error is None
    return broker


def register(cluster: Any) -> Any:
    return Broker(cluster, 2).send(WantedState.FENCED, caller=BROKER)


def come_online(cluster: Any) -> Any:
    return cluster.broker_2.send(WantedState.ONLINE, caller=BROKER)


def lose_a_directory(cluster: Any) -> Any:
    lost = (uuid_text(DIRECTORY),)
    broker = cluster.broker_2
    return broker.send(WantedState.FENCED, offline_log_dirs=lost, caller=BROKER)


@pytest.mark.parametrize("ask", [register, come_online, lose_a_directory])
@pytest.mark.parametrize("denied", [False, True])
def test_what_a_broker_asks_for_is_judged_when_it_is_decided(ask: Any, denied: bool) -> None:
    cluster = made()
    if ask is not register:
        cluster.broker_2 = registered(cluster)
    before = cluster.image.cluster.brokers.get(2)
    denied_before_its_turn(
        cluster,
        denial("Broker:2" if denied else "Broker:3", AclOperation.CLUSTER_ACTION, "kafka-cluster"),
    )
    ask(cluster)
    cluster.run(2.0)
    assert (cluster.image.cluster.brokers.get(2) == before) is denied
    cluster.assert_equal()


@pytest.mark.parametrize("denied", [False, True])
def test_a_transfer_of_the_leadership_is_judged_when_it_is_decided(denied: bool) -> None:
    cluster = made()
    cluster.write(entry(AclOperation.ALTER, "quorum", Kind.CLUSTER))
    denied_before_its_turn(
        cluster, denial("User:alice" if denied else "User:bob", AclOperation.ALTER, "quorum")
    )
    replies = cluster.send("POST", "/v1/quorum/transfer", {"nodeId": 2}, caller=ALICE)
    cluster.run_until(lambda: bool(replies))
    cluster.run(0.5)
    assert replies[0].status == (403 if denied else 200)
    assert cluster.controllers[1].active is denied
