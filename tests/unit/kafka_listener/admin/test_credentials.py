"""SCRAM credentials and delegation tokens, asked with Kafka's bytes."""

import pytest

from kafka_listener.asking.kafka_code import KafkaCode
from metadata.sealing import ClusterKey
from runtime.http.requests import Caller
from tests.unit.controller.cluster import Cluster
from tests.unit.kafka_listener.kafka_kit import ALICE, KafkaClient, codes

SHA_256, SHA_512 = 1, 2
BOB = Caller("User:bob", "token", "10.0.0.8")
SECRET = b"s" * 32


@pytest.fixture
def cluster():
    return Cluster(nodes=1, cluster_key=ClusterKey(b"k" * 32))


@pytest.fixture
def client(cluster):
    return KafkaClient(cluster)


def upsert(name, mechanism=SHA_256, iterations=8192, salt=b"salt" * 4, password=SECRET):
    return {
        "Name": name,
        "Mechanism": mechanism,
        "Iterations": iterations,
        "Salt": salt,
        "SaltedPassword": password,
    }


def delete(name, mechanism=SHA_256):
    return {"Name": name, "Mechanism": mechanism}


def alter(client, upsertions=(), deletions=()):
    fields = {"Upsertions": list(upsertions), "Deletions": list(deletions)}
    return client.ask(51, 0, **fields)["Results"]


def users(client, *names):
    rows = [{"Name": name} for name in names] or None
    found = client.ask(50, 0, Users=rows)
    assert found["ErrorCode"] == 0
    return found["Results"]


def test_credentials_are_set_shown_without_secrets_and_removed(client):
    assert codes(alter(client, [upsert("a"), upsert("b", SHA_512, password=b"x" * 64)])) == [0, 0]
    assert [(user["User"], user["CredentialInfos"]) for user in users(client)] == [
        ("a", [{"Mechanism": SHA_256, "Iterations": 8192}]),
        ("b", [{"Mechanism": SHA_512, "Iterations": 8192}]),
    ]
    assert codes(alter(client, deletions=[delete("a")])) == [0]
    assert [user["User"] for user in users(client)] == ["b"]


def test_users_that_are_unknown_or_there_twice(client):
    alter(client, [upsert("a")])
    found = users(client, "a", "nobody", "b", "b")
    not_found, twice = KafkaCode.RESOURCE_NOT_FOUND, KafkaCode.DUPLICATE_RESOURCE
    assert codes(found) == [0, not_found, twice]
    assert all(user["ErrorMessage"] for user in found[1:])


REFUSED = [
    (upsert("", SHA_256), KafkaCode.UNACCEPTABLE_CREDENTIAL),
    (upsert("a", iterations=1), KafkaCode.UNACCEPTABLE_CREDENTIAL),
    (upsert("a", iterations=10**6), KafkaCode.UNACCEPTABLE_CREDENTIAL),
    (upsert("a", 0), KafkaCode.UNSUPPORTED_SASL_MECHANISM),
    (upsert("a", 9), KafkaCode.UNSUPPORTED_SASL_MECHANISM),
    (upsert("a", salt=b""), KafkaCode.UNACCEPTABLE_CREDENTIAL),
]


@pytest.mark.parametrize(("wanted", "code"), REFUSED, ids=lambda each: str(each)[:60])
def test_each_user_has_its_own_refusal(client, wanted, code):
    """Alone, and beside a good one, which is set."""
    (alone,) = alter(client, [wanted])
    assert alone["ErrorCode"] == code
    assert alone["ErrorMessage"]
    assert alone["User"] == wanted["Name"]
    found = alter(client, [wanted, upsert("good")])
    assert {each["User"]: each["ErrorCode"] for each in found} == {wanted["Name"]: code, "good": 0}


def test_a_deletion_of_nothing_and_an_empty_request(client):
    assert codes(alter(client, deletions=[delete("nobody")])) == [KafkaCode.RESOURCE_NOT_FOUND]
    assert alter(client) == []
    alter(client, [upsert("a")])
    twice = alter(client, [upsert("a")], [delete("a")])
    assert codes(twice) == [KafkaCode.DUPLICATE_RESOURCE]


def create(client, version=3, **fields):
    renewers = [{"PrincipalType": "User", "PrincipalName": "bob"}]
    return client.ask(38, version, Renewers=renewers, MaxLifetimeMs=-1, **fields)


def owners(client, version=3, *names):
    rows = [{"PrincipalType": "User", "PrincipalName": name} for name in names] or None
    found = client.ask(41, version, Owners=rows)
    assert found["ErrorCode"] == 0
    return {token["TokenId"]: token for token in found["Tokens"]}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_token_lives_by_its_hmac(cluster, client, version):
    """Another token lives beside it, and is not touched."""
    other = create(client, version)
    token = create(client, version)
    assert token["ErrorCode"] == 0
    assert len(token["Hmac"]) == 64
    assert (token["PrincipalType"], token["PrincipalName"]) == ("User", "alice")
    listed = owners(client, version)
    assert set(listed) == {other["TokenId"], token["TokenId"]}
    mine = listed[token["TokenId"]]
    assert mine["ExpiryTimestamp"] == token["ExpiryTimestampMs"]
    assert mine["Renewers"] == [{"PrincipalType": "User", "PrincipalName": "bob"}]
    assert mine["Hmac"] == b""
    assert owners(client, version, "alice") == listed
    assert owners(client, version, "carol") == {}
    cluster.run(5.0)
    bob = KafkaClient(cluster, BOB)
    low = min(version, 2)
    renewed = bob.ask(39, low, Hmac=token["Hmac"], RenewPeriodMs=60_000)
    assert renewed["ErrorCode"] == 0
    assert owners(client)[token["TokenId"]]["ExpiryTimestamp"] == renewed["ExpiryTimestampMs"]
    assert owners(client)[other["TokenId"]]["ExpiryTimestamp"] == other["ExpiryTimestampMs"]
    ended = bob.ask(40, low, Hmac=token["Hmac"], ExpiryTimePeriodMs=-1)
    assert ended["ErrorCode"] == 0
    assert set(owners(client)) == {other["TokenId"]}


@pytest.mark.parametrize("hmac", [b"", b"x" * 64, b"x" * 1000])
def test_no_token_has_this_hmac(client, hmac):
    create(client)
    code = KafkaCode.DELEGATION_TOKEN_NOT_FOUND
    assert client.ask(39, 2, Hmac=hmac, RenewPeriodMs=1)["ErrorCode"] == code
    assert client.ask(40, 2, Hmac=hmac, ExpiryTimePeriodMs=-1)["ErrorCode"] == code


def test_who_may_not(cluster, client):
    token = create(client)
    carol = KafkaClient(cluster, Caller("User:carol", "token", ""))
    found = carol.ask(39, 2, Hmac=token["Hmac"], RenewPeriodMs=1)
    assert found["ErrorCode"] == KafkaCode.DELEGATION_TOKEN_OWNER_MISMATCH
    other = create(client, OwnerPrincipalType="User", OwnerPrincipalName="carol")
    assert other["ErrorCode"] == KafkaCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED


def test_without_a_cluster_key_there_are_no_tokens():
    client = KafkaClient(Cluster(nodes=1), ALICE)
    assert create(client)["ErrorCode"] == KafkaCode.DELEGATION_TOKEN_AUTH_DISABLED


def test_who_logged_in_with_a_token_gets_renews_and_expires_none():
    caller = Caller("User:carol", "delegation-token", "10.0.0.7")
    client = KafkaClient(Cluster(nodes=1, cluster_key=ClusterKey(bytes(32))), caller)
    for api_key, version in ((38, 3), (39, 2), (40, 2)):
        found = client.ask(api_key, version)
        assert found["ErrorCode"] == KafkaCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert client.asked == []
