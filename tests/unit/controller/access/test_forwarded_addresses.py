"""The address of a client whose request a broker forwards: what depends on it, and who may say it.

Attack: an entry denies a host, and a client at that host asks through any agent.
"""

from typing import Any

import msgspec
import pytest

from metadata.records import (
    AccessControlEntryRecord,
    AclOperation,
    AclPermissionType,
    AttemptOutcome,
    AttemptsRecord,
    RemoveAccessControlEntryRecord,
)
from runtime.http.requests import ANONYMOUS, Caller
from tests.unit.controller.access.test_guard import ALICE, OF_BROKER, ROOT, create, entry, made

pytestmark = pytest.mark.simulation

DENIED_HOST, OTHER_HOST = "192.0.2.66", "192.0.2.1"
GRANTS = {1: frozenset({"User:alice"})}
CLAIM = {"x-logberg-on-behalf-of": "User:alice"}
CARRIED = Caller("User:alice", "token", "10.0.0.1", carried_by="Broker:1")
BY_TOKEN = Caller("Broker:1", "token", "10.0.0.1")
FORWARDED = [(OF_BROKER, CLAIM), (BY_TOKEN, CLAIM), (CARRIED, {})]
NAMES = ["a broker's certificate", "a broker's token", "a user's token that a broker carries"]


def at(host: str) -> dict[str, str]:
    return {"x-logberg-client-address": host}


def denied(host: str, principal: str = "User:alice") -> AccessControlEntryRecord:
    deny = AclPermissionType.DENY
    record = entry(AclOperation.CREATE, principal=principal, permission=deny, number=2)
    return msgspec.structs.replace(record, host=host)


def attempts(cluster: Any) -> list[AttemptsRecord]:
    return [record for record in cluster.records() if isinstance(record, AttemptsRecord)]


@pytest.mark.parametrize(("caller", "claim"), FORWARDED, ids=NAMES)
def test_an_entry_about_a_host_counts_through_an_agent(
    caller: Caller, claim: dict[str, str]
) -> None:
    cluster = made(nodes=1, delegations=GRANTS)
    cluster.write(entry(AclOperation.CREATE), denied(DENIED_HOST))
    status, reply = create(cluster, caller=caller, headers={**claim, **at(DENIED_HOST)})
    assert (status, reply["code"]) == (403, "TOPIC_AUTHORIZATION_FAILED")
    (told,) = [each for each in cluster.events("access_refused") if each["who"] == "User:alice"]
    assert told["address"] == DENIED_HOST
    assert create(cluster, caller=caller, headers={**claim, **at(OTHER_HOST)})[0] == 200
    said = cluster.batches()[-1].header.provenance
    assert (said.on_behalf_of or said.principal, said.client_address) == ("User:alice", OTHER_HOST)
    cluster.run(12)
    (attempt,) = attempts(cluster)
    assert (attempt.principal, attempt.address) == ("User:alice", DENIED_HOST)


@pytest.mark.parametrize(("caller", "claim"), FORWARDED, ids=NAMES)
def test_a_caller_hears_at_which_address_it_is_known(caller: Caller, claim: dict[str, str]) -> None:
    cluster = made(nodes=1, delegations=GRANTS)
    headers = {**claim, **at("2001:DB8:0::1")}
    status, reply = cluster.ask("GET", "/v1/caller", caller=caller, headers=headers)
    assert (status, reply["address"]) == (200, "2001:db8::1")


def test_changes_that_came_joined_have_the_address_of_the_whole_request() -> None:
    cluster = made(nodes=1, delegations=GRANTS)
    cluster.write(entry(AclOperation.CREATE), denied(DENIED_HOST))
    topic = {"name": "orders", "numPartitions": 1, "replicationFactor": 1}
    change = {"method": "POST", "path": "/v1/topics", "body": {"topics": [topic]}}

    def made_at(host: str) -> int:
        headers = {**CLAIM, **at(host)}
        body = {"changes": [change]}
        options = {"caller": OF_BROKER, "headers": headers}
        status, reply = cluster.ask("POST", "/v1/changes", body, **options)
        assert status == 200, reply
        return int(reply["outcomes"][0]["status"])

    assert (made_at(DENIED_HOST), made_at(OTHER_HOST)) == (403, 200)
    assert cluster.batches()[-1].header.provenance.client_address == OTHER_HOST


def test_an_agent_without_the_header_asks_at_its_own_address_as_before() -> None:
    cluster = made(nodes=1, delegations=GRANTS)
    cluster.write(entry(AclOperation.CREATE), denied(OF_BROKER.address))
    assert create(cluster, caller=OF_BROKER, headers=CLAIM)[0] == 403
    cluster.write(RemoveAccessControlEntryRecord(denied(DENIED_HOST).id), denied(DENIED_HOST))
    assert create(cluster, caller=OF_BROKER, headers=CLAIM)[0] == 200
    assert cluster.batches()[-1].header.provenance.client_address == OF_BROKER.address


@pytest.mark.parametrize("enforcement", ["on", "log-only", "off"])
@pytest.mark.parametrize(
    ("caller", "claim"),
    [
        (ALICE, {}),
        (ALICE, CLAIM),
        (ROOT, {}),
        (ANONYMOUS, {}),
        (Caller("Controller:1", "certificate", "10.0.0.1"), CLAIM),
        (Caller("User:alice", "token", "10.0.0.7", carried_by="User:bob"), {}),
        (Caller("User:alice", "token", "10.0.0.7", carried_by="Controller:2"), {}),
        (OF_BROKER, {}),
        (Caller("Broker:1", "token", "10.0.0.1", carried_by="Broker:1"), {}),
    ],
    ids=[
        "a user",
        "a user with a claim",
        "a super user",
        "nobody",
        "a controller",
        "a token that a user carries",
        "a token that a controller carries",
        "a broker for itself",
        "a broker for itself by token and certificate",
    ],
)
def test_nobody_else_names_an_address(
    caller: Caller, claim: dict[str, str], enforcement: str
) -> None:
    """Whoever asks for itself could avoid an entry about its own host."""
    cluster = made(enforcement, nodes=1, delegations=GRANTS)
    cluster.write(entry(AclOperation.CREATE, principal="*"))
    status, reply = create(cluster, caller=caller, headers={**claim, **at(OTHER_HOST)})
    assert (status, reply["code"]) == (403, "CLUSTER_AUTHORIZATION_FAILED")
    assert "x-logberg-client-address" in reply["message"]
    assert cluster.image.topics.named("orders") is None
    (told,) = cluster.events("access_refused")
    own = caller.address or "unix socket"
    assert (told["who"], told["address"], told["enforced"]) == (caller.principal, own, "yes")
    cluster.run(12)
    (attempt,) = attempts(cluster)
    assert (attempt.operation, attempt.address, attempt.outcome, attempt.count) == (
        "create_topics",
        own,
        AttemptOutcome.REFUSED,
        1,
    )


@pytest.mark.parametrize(
    "text", ["somewhere", "192.0.2.256", "192.0.2.1, 192.0.2.2", "fe80::1%\x1b"]
)
def test_a_text_that_is_no_address_is_refused(text: str) -> None:
    cluster = made(nodes=1, delegations=GRANTS)
    status, reply = create(cluster, caller=OF_BROKER, headers={**CLAIM, **at(text)})
    assert (status, reply["code"]) == (400, "INVALID_REQUEST")
    assert "x-logberg-client-address" in reply["message"]
