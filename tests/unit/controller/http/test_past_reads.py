"""A past state, read from the log, is what the active controller answered then."""

import datetime as dt
import json
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from controller.http.past_reads import UNKNOWN_OWN, read_past
from controller.http.route import PAGE, READS
from controller.http.routes import ROUTES
from logberg.local.local_ca import LocalCertificateAuthority
from metadata.certifying import NodeAuthority
from metadata.codec import decode_records
from metadata.configs.effective import OwnConfigs
from metadata.errors import LogbergError
from metadata.image import EMPTY, MetadataDelta
from metadata.pseudonyms import pseudonym_of
from metadata.records import (
    ConfigRecord,
    ConfigResourceType,
    FeatureLevelRecord,
    PseudonymRecord,
    TopicRecord,
)
from metadata.sealing import ClusterKey
from tests.unit.controller.cluster import CLUSTER_ID, DECLARED, Cluster

SECRETS = {"iterations": 4096, "salt": "c2FsdA==", "saltedPassword": "A" * 43 + "="}
ENTRY = {"resourceType": "TOPIC", "resourceName": "t", "operation": "READ", "principal": "User:a"}
QUOTA = {"key": "producer_byte_rate", "value": 1.0}
CHANGES: list[tuple[str, str, dict[str, Any] | None]] = [
    ("POST", "/v1/topics", {"topics": [{"name": "t", "assignments": []}]}),
    ("PATCH", "/v1/configs/topic/t", {"configs": [{"name": "retention.ms", "value": "5"}]}),
    ("POST", "/v1/acls", {"acls": [ENTRY]}),
    (
        "POST",
        "/v1/quotas",
        {
            "entries": [
                {"entity": [{"entityType": "user", "entityName": "a"}], "operations": [QUOTA]}
            ]
        },
    ),
    (
        "POST",
        "/v1/users/scram",
        {"upsertions": [{"name": "a", "mechanism": "SCRAM-SHA-256", **SECRETS}]},
    ),
    ("POST", "/v1/tokens", {}),
    ("POST", "/v1/topics", {"topics": [{"name": "u", "numPartitions": 2}]}),
    ("DELETE", "/v1/topics/t", None),
    ("DELETE", "/v1/acls", {"filters": [{}]}),
    ("POST", "/v1/coordination/sessions", {"ttlMs": 60_000}),
    ("POST", "/v1/coordination/commit", {"operations": [{"op": "put", "key": "k"}]}),
]
QUERIES = {
    "check_acl": {
        "principal": "User:a",
        "operation": "READ",
        "resourceType": "TOPIC",
        "resourceName": "t",
    },
    "resolve_quotas": {"user": "a"},
    "list_quotas": {"userMatch": "any"},
    "list_entries": {"kind": "lock", "name": "l"},
    "get_key": {"key": "k"},
    "plan_reassignments": {"brokers": "1"},
    "lose_brokers": {"brokers": "1"},
}
OF_THE_PAST = [route for route in ROUTES if set(READS) <= set(route.parameters)]
NOT_IN_THE_LOG = {"ageMs", "state", "lastContactMs", "appliedOffset", "software", "voter", "note"}
"""What only a running controller knows: contacts of brokers, voters, and how old it is."""


def path_of(route: Any) -> str:
    path = route.path.replace("{type}", "topic").replace("{topic}", "u").replace("{partition}", "1")
    name = "a" if route.name == "describe_user" else "t"
    return str(path).replace("{name}", name).replace("{id}", "1")


def of_the_log(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: of_the_log(v) for k, v in value.items() if k not in NOT_IN_THE_LOG}
    return [of_the_log(each) for each in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def history() -> tuple[Cluster, list[tuple[int, str, int, Any]]]:
    """A cluster, and what its leader answered at each offset."""
    cluster = Cluster(nodes=1, cluster_key=ClusterKey(bytes(32)), default_replication_factor=1)
    cluster.online(1, 2, features=DECLARED)
    cluster.write(FeatureLevelRecord("metadata.version", 33))
    answered = []
    for method, path, body in CHANGES:
        assert cluster.ask(method, path, body)[0] == 200, path
        for route in OF_THE_PAST:
            query = QUERIES.get(route.name, {})
            status, reply = cluster.ask("GET", path_of(route), query=query)
            answered.append((cluster.image.offset, route.name, status, reply))
    return cluster, answered


def image_at(cluster: Cluster, offset: int) -> Any:
    delta = MetadataDelta(EMPTY)
    for batch in cluster.batches():
        header = batch.header
        if header.end_offset <= offset:
            delta.replay_all(decode_records(batch.records), header.base_offset)
            delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
    return delta.apply()


@pytest.mark.parametrize(
    "route",
    [r for r in OF_THE_PAST if r.name != "explain_broker"],
    ids=lambda route: route.name,
)
def test_a_past_state_is_what_the_leader_answered(
    history: tuple[Cluster, list[tuple[int, str, int, Any]]], route: Any
) -> None:
    cluster, answered = history
    mine = [each for each in answered if each[1] == route.name]
    assert len(mine) == len(CHANGES)
    for offset, name, status, reply in mine:
        query = QUERIES.get(name, {})
        image = image_at(cluster, offset)
        if status == 200:
            past = json.loads(read_past(image, path_of(route), query, OwnConfigs({}, 1)))
            assert of_the_log(past) == of_the_log(reply), offset
        else:
            with pytest.raises(LogbergError) as refused:
                read_past(image, path_of(route), query)
            assert (refused.value.code.status, refused.value.code.value) == (status, reply["code"])


def test_what_is_in_no_log_is_refused() -> None:
    for path in ("/v1/status", "/v1/log", "/nothing"):
        with pytest.raises(LogbergError, match="no such state"):
            read_past(EMPTY, path, {})


OWN = OwnConfigs({"log.retention.ms": "7", "min.insync.replicas": "2"}, 9)
DEFAULT = "DEFAULT_CONFIG"


@pytest.mark.parametrize(
    ("own", "key", "value", "source"),
    [
        (None, "retention.ms", "5", "DYNAMIC_TOPIC_CONFIG"),
        (None, "min.insync.replicas", "1", UNKNOWN_OWN),
        (OwnConfigs(), "min.insync.replicas", "1", DEFAULT),
        (OWN, "retention.ms", "5", "DYNAMIC_TOPIC_CONFIG"),
        (OWN, "min.insync.replicas", "2", "STATIC_BROKER_CONFIG"),
        (OWN, "cleanup.policy", "delete", DEFAULT),
        (None, "leader.replication.throttled.replicas", "", DEFAULT),
    ],
)
def test_the_source_of_a_default_says_that_settings_are_in_no_log(
    history: tuple[Cluster, list[tuple[int, str, int, Any]]],
    own: OwnConfigs | None,
    key: str,
    value: str,
    source: str,
) -> None:
    cluster, answered = history
    offset = answered[len(OF_THE_PAST)][0]
    said = json.loads(read_past(image_at(cluster, offset), "/v1/configs/topic/t", {}, own))
    (entry,) = (each for each in said["configs"] if each["name"] == key)
    assert (entry["value"], entry["source"]) == (value, source)
    assert entry["synonyms"][0]["source"] == source
    below = {each["source"] for each in entry["synonyms"][1:]}
    assert (UNKNOWN_OWN in below) == (own is None and key == "retention.ms")


def test_brokers_configs_are_no_settings_of_an_unknown_controller(
    history: tuple[Cluster, list[tuple[int, str, int, Any]]],
) -> None:
    """A broker 0 may exist. Its dynamic configs count for topics only on a controller 0."""
    image = EMPTY
    delta = MetadataDelta(image)
    delta.replay_all(
        [
            TopicRecord("t", bytes(16)),
            ConfigRecord(ConfigResourceType.BROKER, "0", "log.retention.ms", "8"),
        ],
        0,
    )
    delta.finish_batch(2, 1, 1)
    image = delta.apply()
    for own, value in ((None, "604800000"), (OwnConfigs({}, 0), "8")):
        said = json.loads(read_past(image, "/v1/configs/topic/t", {}, own))
        (entry,) = (each for each in said["configs"] if each["name"] == "retention.ms")
        assert entry["value"] == value


@pytest.mark.parametrize(("broker", "marked"), [("1", True), ("2", False)])
def test_only_a_controllers_own_broker_configs_are_unknown(
    history: tuple[Cluster, list[tuple[int, str, int, Any]]], broker: str, marked: bool
) -> None:
    cluster, answered = history
    image = image_at(cluster, answered[-1][0])
    said = json.loads(read_past(image, f"/v1/configs/broker/{broker}", {}))
    assert {each["source"] == UNKNOWN_OWN for each in said["configs"]} == {marked}


LISTS = [route for route in ROUTES if PAGE[1] in route.parameters and route.name != "export"]


@pytest.mark.parametrize("route", LISTS, ids=lambda route: route.name)
def test_every_list_comes_in_pages_from_one_offset_or_says_that_it_is_gone(
    route: Any, tmp_path: Path
) -> None:
    """A new list needs no row here."""
    LocalCertificateAuthority(tmp_path, CLUSTER_ID, dt.datetime.now(dt.UTC))
    authority = NodeAuthority(*((tmp_path / name).read_bytes() for name in ("ca.crt", "ca.key")))
    cluster = Cluster(nodes=1, cluster_key=ClusterKey(bytes(32)), authority=authority)
    cluster.online(1, 2, 3, features=DECLARED)
    cluster.write(FeatureLevelRecord("metadata.version", 33))
    for name in "tuv":
        cluster.write(PseudonymRecord(pseudonym_of(name.encode() * 8), b"what nobody opens"))
        cluster.run(0.1)  # The controller looks at the new pseudonym beside its other work.
        rows = [{"partitionIndex": n, "brokerIds": [1, 2]} for n in range(3)]
        cluster.ask("POST", "/v1/topics", {"topics": [{"name": name, "assignments": rows}]})
        wanted = {"topic": name, "partition": 0, "replicas": [1, 3]}
        assert cluster.ask("POST", "/v1/reassignments", {"partitions": [wanted]})[0] == 200
        config = {"configs": [{"name": "retention.ms", "value": "5"}]}
        cluster.ask("PATCH", f"/v1/configs/topic/{name}", config)
        cluster.ask("POST", "/v1/acls", {"acls": [ENTRY | {"resourceName": name}]})
        entity = [{"entityType": "user", "entityName": name}]
        cluster.ask("POST", "/v1/quotas", {"entries": [{"entity": entity, "operations": [QUOTA]}]})
        credential = {"name": name, "mechanism": "SCRAM-SHA-256", **SECRETS}
        cluster.ask("POST", "/v1/users/scram", {"upsertions": [credential]})
        cluster.ask("POST", "/v1/tokens", {})
        hashed, other = (
            b64encode(sha256(of.encode()).digest()).decode() for of in (name, name * 2)
        )
        token = {"principal": f"User:{name}", "sha256": hashed}
        status, said = cluster.ask("POST", "/v1/access-tokens", token)
        assert status == 200, said
        node = {"role": "broker", "nodeId": 7, "sha256": other, "hosts": ["a"]}
        status, said = cluster.ask("POST", "/v1/join-tokens", node)
        assert status == 200, said
        assert cluster.ask("POST", "/v1/revocations", {"principal": f"User:{name}"})[0] == 200
        _, opened = cluster.ask("POST", "/v1/coordination/sessions", {"ttlMs": 600_000})
        entry = {"kind": "lock", "name": name, "id": "1", "sessionId": opened["sessionId"]}
        cluster.ask("POST", "/v1/coordination/entries", entry)
        operation = {"op": "put", "key": name}
        cluster.ask("POST", "/v1/coordination/commit", {"operations": [operation]})
    path, query = path_of(route), dict(QUERIES.get(route.name, {}))
    if route.name == "list_entries":
        del query["name"]  # A queue comes whole, the entries of a kind in pages.
    status, first = cluster.ask("GET", path, query={**query, "limit": "1"})
    assert status == 200, first
    assert first["continuation"] is not None
    cluster.ask("DELETE", "/v1/topics/u")
    again = {**query, "limit": "1", "continuation": first["continuation"]}
    status, second = cluster.ask("GET", path, query=again)
    assert (status, second["offset"]) == (200, first["offset"])
    assert second["offset"] < cluster.image.offset
    cluster.run(130.0)
    status, gone = cluster.ask("GET", path, query=again)
    assert (status, gone["code"]) == (410, "CONTINUATION_EXPIRED")
