"""Lists about clients come in pages, all from one state, whatever the filter leaves out."""

from base64 import urlsafe_b64encode

import msgspec
import pytest

from metadata.sealing import ClusterKey
from tests.unit.controller.cluster import Cluster

COUNT = 5


@pytest.fixture(scope="module")
def cluster():
    cluster = Cluster(nodes=1, cluster_key=ClusterKey(bytes(32)))
    names = [f"n{n}" for n in range(COUNT)]
    acls = [
        {"resourceType": "TOPIC", "resourceName": n, "principal": "User:a", "operation": "READ"}
        for n in names
    ]
    entries = [
        {
            "entity": [{"entityType": "user", "entityName": name}],
            "operations": [{"key": "producer_byte_rate", "value": 1.0}],
        }
        for name in names
    ]
    secrets = {"iterations": 4096, "salt": "c2FsdA==", "saltedPassword": "A" * 43 + "="}
    users = [{"name": name, "mechanism": "SCRAM-SHA-256", **secrets} for name in names]
    for path, body in (
        ("/v1/acls", {"acls": acls}),
        ("/v1/quotas", {"entries": entries}),
        ("/v1/users/scram", {"upsertions": users}),
        *[("/v1/tokens", {})] * COUNT,
    ):
        status, reply = cluster.ask("POST", path, body)
        assert status == 200, reply
    return cluster


LISTS = [
    ("/v1/acls", "acls", {"principal": "User:a"}, {"resourceName": "n3"}),
    ("/v1/quotas", "entries", {"userMatch": "any"}, {"user": "n3"}),
    ("/v1/users", "users", {}, None),
    ("/v1/tokens", "tokens", {"owner": "User:alice"}, None),
]


def pages(cluster, path, field, query):
    found, more = [], {}
    while True:
        status, reply = cluster.ask("GET", path, query={**query, "limit": "2", **more})
        assert status == 200, reply
        assert len(reply[field]) <= 2
        found.append(reply)
        if reply["continuation"] is None:
            return found
        more = {"continuation": reply["continuation"]}


@pytest.mark.parametrize(("path", "field", "query", "_narrow"), LISTS, ids=str)
def test_all_pages_together_are_the_list(cluster, path, field, query, _narrow):
    read = pages(cluster, path, field, query)
    assert sum(len(page[field]) for page in read) == COUNT
    assert len(read) >= 3
    assert len({page["offset"] for page in read}) == 1
    names = [str(entry) for page in read for entry in page[field]]
    assert len(set(names)) == COUNT


@pytest.mark.parametrize(
    ("path", "field", "_query", "narrow"), [each for each in LISTS if each[3]], ids=str
)
def test_pages_without_a_match_are_empty_and_go_on(cluster, path, field, _query, narrow):
    read = pages(cluster, path, field, narrow)
    assert sum(len(page[field]) for page in read) == 1
    assert len(read) >= 3


@pytest.mark.parametrize("path", [each[0] for each in LISTS])
@pytest.mark.parametrize(
    "query", [{"limit": "0"}, {"limit": "x"}, {"continuation": "nonsense"}], ids=str
)
def test_a_wrong_page_is_refused(cluster, path, query):
    status, reply = cluster.ask("GET", path, query=query)
    assert (status, reply["code"]) == (400, "INVALID_REQUEST")


def test_a_token_of_another_list_is_refused(cluster):
    first = cluster.ask("GET", "/v1/users", query={"limit": "1"})[1]["continuation"]
    for path in ("/v1/acls", "/v1/quotas", "/v1/tokens"):
        status, reply = cluster.ask("GET", path, query={"continuation": first})
        assert (status, reply["code"]) == (400, "INVALID_REQUEST")


@pytest.mark.parametrize(("path", "of"), [(each[0], each[0][4:]) for each in LISTS])
def test_a_forged_token_is_refused(cluster, path, of):
    """Its last key is no key of the list."""
    for last in ("zz", "[1]", "{}"):
        forged = msgspec.msgpack.encode([of, cluster.image.offset, last])
        token = urlsafe_b64encode(forged).decode().rstrip("=")
        status, reply = cluster.ask("GET", path, query={"continuation": token})
        assert status in (200, 400), reply
        assert status == 200 or reply["code"] == "INVALID_REQUEST"
