"""CreateAcls, DeleteAcls and DescribeAcls, asked with Kafka's bytes."""

import pytest

from kafka_listener.asking.kafka_code import KafkaCode
from tests.unit.controller.cluster import Cluster
from tests.unit.kafka_listener.kafka_kit import KafkaClient, codes

ANY, TOPIC, GROUP, CLUSTER = 1, 2, 3, 4
MATCH, LITERAL, PREFIXED = 2, 3, 4
READ, WRITE, ALTER = 3, 4, 7
DENY, ALLOW = 2, 3


@pytest.fixture
def cluster():
    return Cluster(nodes=1)


@pytest.fixture
def client(cluster):
    return KafkaClient(cluster)


def acl(name="orders", kind=TOPIC, pattern=LITERAL, who="User:bob", operation=READ, **more):
    return {
        "ResourceType": kind,
        "ResourceName": name,
        "ResourcePatternType": pattern,
        "Principal": who,
        "Host": "*",
        "Operation": operation,
        "PermissionType": ALLOW,
        **more,
    }


def wanted(kind=ANY, name=None, pattern=ANY, who=None, operation=ANY):
    return {
        "ResourceTypeFilter": kind,
        "ResourceNameFilter": name,
        "PatternTypeFilter": pattern,
        "PrincipalFilter": who,
        "HostFilter": None,
        "Operation": operation,
        "PermissionType": ANY,
    }


def create(client, *acls, version=3):
    return client.ask(30, version, Creations=list(acls))["Results"]


def described(client, version=3, **filters):
    found = client.ask(29, version, **wanted(**filters))
    assert found["ErrorCode"] == 0
    return {
        (each["ResourceType"], each["ResourceName"], each["PatternType"]): sorted(
            (entry["Principal"], entry["Operation"], entry["PermissionType"])
            for entry in each["Acls"]
        )
        for each in found["Resources"]
    }


@pytest.mark.parametrize("version", [1, 2, 3])
def test_entries_are_made_found_and_removed_in_every_version(client, version):
    entries = [acl(), acl(operation=WRITE), acl("ord", pattern=PREFIXED), acl("g", GROUP)]
    assert codes(create(client, *entries, version=version)) == [0] * 4
    assert described(client, version) == {
        (TOPIC, "orders", LITERAL): [("User:bob", READ, ALLOW), ("User:bob", WRITE, ALLOW)],
        (TOPIC, "ord", PREFIXED): [("User:bob", READ, ALLOW)],
        (GROUP, "g", LITERAL): [("User:bob", READ, ALLOW)],
    }
    matching = described(client, version, kind=TOPIC, name="orders", pattern=MATCH, operation=READ)
    assert set(matching) == {(TOPIC, "orders", LITERAL), (TOPIC, "ord", PREFIXED)}
    filters = [wanted(kind=GROUP), wanted(who="User:nobody"), wanted(name="orders")]
    removed = client.ask(31, version, Filters=filters)["FilterResults"]
    assert codes(removed) == [0, 0, 0]
    assert [len(each["MatchingAcls"]) for each in removed] == [1, 0, 2]
    assert removed[0]["MatchingAcls"][0]["ResourceName"] == "g"
    assert set(described(client, version)) == {(TOPIC, "ord", PREFIXED)}


REFUSED = [
    acl(kind=0),
    acl(kind=99),
    acl(kind=ANY),
    acl(pattern=ANY),
    acl(pattern=-1),
    acl(operation=0),
    acl(operation=ANY),
    acl(operation=77),
    acl(name=""),
    acl(who="bob"),
    acl(PermissionType=ANY),
    acl("other", CLUSTER),
]


@pytest.mark.parametrize("entry", REFUSED, ids=lambda entry: str(list(entry.values())))
def test_each_entry_has_its_own_refusal(client, entry):
    """Alone, and beside a good one, which is made."""
    (alone,) = create(client, entry)
    assert alone["ErrorCode"] in (KafkaCode.INVALID_REQUEST, KafkaCode.INVALID_PRINCIPAL_TYPE)
    assert alone["ErrorMessage"]
    assert codes(create(client, entry, acl()))[1] == 0
    assert set(described(client)) == {(TOPIC, "orders", LITERAL)}


def test_an_entry_that_exists_is_no_error(cluster, client):
    create(client, acl())
    end = cluster.image.offset
    assert codes(create(client, acl())) == [0]
    assert cluster.image.offset - end <= 1, "at most the remembered outcome"
    assert len(described(client)[TOPIC, "orders", LITERAL]) == 1


def test_nothing_to_do(client):
    assert create(client) == []
    assert client.ask(31, 3, Filters=[])["FilterResults"] == []
    assert not client.asked


def test_a_wrong_filter_is_an_error_at_the_top(client):
    found = client.ask(29, 3, **wanted(kind=99))
    assert found["ErrorCode"] == KafkaCode.INVALID_REQUEST
    assert found["Resources"] == []
    removed = client.ask(31, 3, Filters=[wanted(kind=99), wanted()])["FilterResults"]
    assert codes(removed) == [KafkaCode.INVALID_REQUEST, 0]


def test_a_list_of_several_pages_is_whole(client):
    for start in range(0, 5000, 1000):
        create(client, *(acl(f"t{i}") for i in range(start, start + 1000)))
    assert len(described(client, kind=TOPIC)) == 5000
    assert len(client.asked) > 7
