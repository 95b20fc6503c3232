"""The principal is the authenticated caller. The log also has what it acted as and for whom."""

import pytest

from metadata.errors import ErrorCode
from metadata.messages import WantedState
from metadata.uuids import uuid_text
from runtime.http.requests import ANONYMOUS, Caller
from tests.unit.controller.cluster import Broker, Cluster

STOPPING = WantedState.STOPPING
CERTIFICATE = Caller("Broker:1", "certificate", "10.0.0.1")
TOKEN = Caller("Broker:1", "token", "10.0.0.1")
USER = Caller("User:alice", "token", "10.0.0.7")
OTHERS = (
    Caller("Broker:2", "certificate"),
    Caller("Broker:2", "token"),
    Caller("Broker:01", "token"),
    Caller("Controller:1", "certificate"),
)


def told(cluster, operation):
    """Return (principal, method, acted as) of the newest batch of an operation."""
    headers = [b.header for b in cluster.batches() if b.header.provenance.operation == operation]
    said = headers[-1].provenance
    return said.principal, said.auth_method, headers[-1].acted_as


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("caller", [CERTIFICATE, TOKEN, USER, ANONYMOUS, *OTHERS], ids=str)
def test_only_a_credential_bound_to_a_broker_speaks_for_it(caller, required):
    cluster = Cluster(require_authentication=required)
    reply = Broker(cluster, 1).fetch(caller=caller)
    own = caller.principal == "Broker:1"
    if own or (not required and caller.principal.startswith("User:")):
        assert reply.error is None
        said = told(cluster, "RegisterBroker")
        assert said == (caller.principal, caller.method, "" if own else "Broker:1")
    else:
        assert reply.error.known_code() is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert "Broker:1" in reply.error.message
        assert 1 not in cluster.image.cluster.brokers


def test_a_broker_s_incarnation_is_shown_and_lets_no_user_speak_for_it():
    cluster = Cluster(require_authentication=True)
    broker = Broker(cluster, 1)
    for wanted in (WantedState.FENCED, WantedState.ONLINE, WantedState.ONLINE):
        broker.fetch(wanted, caller=CERTIFICATE)
        cluster.run(0.1)
    status, shown = cluster.ask("GET", "/v1/brokers/1", caller=USER)
    assert (status, shown["broker"]["incarnationId"]) == (200, uuid_text(broker.incarnation))
    thief = Broker(cluster, 1, incarnation=broker.incarnation)
    thief.epoch = shown["broker"]["brokerEpoch"]
    reply = thief.fetch(STOPPING, caller=USER)
    assert reply.error.known_code() is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    cluster.run(1.0)
    assert not cluster.broker(1).fenced


def test_what_another_broker_s_progress_releases_is_the_controller_s_own():
    cluster = Cluster()
    one, two = cluster.online(1, 2)
    cluster.assign("t", (1, 2))
    one.fetch(STOPPING)
    cluster.run(0.1)
    assert told(cluster, "BeginControlledShutdown") == ("User:ANONYMOUS", "none", "Broker:1")
    one.catch_up()
    replies = one.send(STOPPING, max_wait_ms=2000)
    two.catch_up()
    cluster.run(0.1)
    assert replies
    assert told(cluster, "FenceBroker") == ("Controller:1", "internal", "")


GRANTS = {1: frozenset({"User:bob"}), 2: frozenset({"User:*"})}


@pytest.mark.parametrize(
    ("caller", "claimed", "granted"),
    [
        (CERTIFICATE, "User:bob", True),
        (TOKEN, "User:bob", True),
        (CERTIFICATE, "User:alice", False),
        (Caller("Broker:2", "certificate"), "User:alice", True),
        (Caller("Broker:2", "certificate"), "Broker:3", False),
        (Caller("Broker:3", "certificate"), "User:bob", False),
        (Caller("Broker:02", "token"), "User:bob", False),
        (Caller("Controller:1", "certificate"), "User:bob", False),
        (Caller("User:bob", "certificate"), "User:bob", False),
        (USER, "User:bob", False),
        (ANONYMOUS, "User:bob", False),
    ],
    ids=str,
)
def test_a_broker_asks_only_for_users_that_the_settings_grant_it(caller, claimed, granted):
    cluster = Cluster(delegations=GRANTS)
    cluster.online(1)
    topic = {"topics": [{"name": "t", "numPartitions": 1, "replicationFactor": 1}]}
    headers = {"x-logberg-on-behalf-of": claimed}
    status, reply = cluster.ask("POST", "/v1/topics", topic, caller=caller, headers=headers)
    if granted:
        assert status == 200
        said = cluster.batches()[-1].header.provenance
        assert (said.principal, said.on_behalf_of) == (caller.principal, claimed)
    else:
        assert (status, reply["code"]) == (403, "CLUSTER_AUTHORIZATION_FAILED")
        assert "[[delegations]]" in reply["message"]


def test_an_old_agent_s_claim_for_nobody_is_no_claim():
    """Release 0.1 sends it for callers that are not authenticated."""
    cluster = Cluster()
    cluster.online(1)
    topic = {"topics": [{"name": "t", "numPartitions": 1, "replicationFactor": 1}]}
    headers = {"x-logberg-on-behalf-of": "User:ANONYMOUS"}
    status, _ = cluster.ask("POST", "/v1/topics", topic, caller=ANONYMOUS, headers=headers)
    assert status == 200
    assert cluster.batches()[-1].header.provenance.on_behalf_of == ""
