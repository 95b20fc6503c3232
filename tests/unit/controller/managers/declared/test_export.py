"""An export shows what can be declared, at one offset; applied elsewhere, it gives the same state.

Secrets are the exception: no export has them.
"""

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.controller.managers.declared.declared_cluster import DeclaredCluster

KINDS = ("topics", "configs", "quotas", "acls", "users")
SECRET = b64encode(b"secret" * 6)[:44].decode()
_name = st.sampled_from(["a", "b-c", "d.e", "ü", "x" * 40])
_topics = st.dictionaries(
    st.sampled_from(["t", "u-v", "w.x", "y1"]),
    st.tuples(
        st.integers(1, 4),
        st.integers(1, 3),
        st.dictionaries(
            st.sampled_from(["retention.ms", "segment.ms", "max.message.bytes"]),
            st.integers(1, 9).map(str),
        ),
    ),
)
_CONFIGS = {
    ("broker", "1"): "log.cleaner.threads",
    ("broker", "default"): "min.insync.replicas",
    ("group", "g"): "consumer.session.timeout.ms",
    ("client-metrics", "m"): "interval.ms",
}
_configs = st.dictionaries(st.sampled_from(list(_CONFIGS)), st.integers(1, 3))
_entity = st.one_of(
    st.dictionaries(st.sampled_from(["user", "client-id"]), st.none() | _name, min_size=1),
    st.just({"ip": "10.0.0.1"}),
    st.just({"ip": None}),
).map(lambda parts: tuple(sorted(parts.items())))
_quotas = st.dictionaries(_entity, st.integers(1, 2**40))
_acls = st.sets(
    st.tuples(
        _name,
        st.sampled_from(["READ", "ALL"]),
        st.sampled_from(["TOPIC", "GROUP"]),
        _name,
        st.sampled_from(["LITERAL", "PREFIXED"]),
        st.sampled_from(["*", "10.0.0.1"]),
        st.sampled_from(["ALLOW", "DENY"]),
    ),
    max_size=6,
)
_users = st.dictionaries(
    st.tuples(_name, st.sampled_from(["SCRAM-SHA-256", "SCRAM-SHA-512"])),
    st.integers(4096, 16384),
    max_size=4,
)
declarations = st.builds(
    lambda topics, configs, quotas, acls, users: {
        "topics": [
            {"name": n, "partitions": p, "replicationFactor": f, "configs": c}
            for n, (p, f, c) in topics.items()
        ],
        "configs": [
            {"resourceType": t, "resourceName": n, "configs": {_CONFIGS[t, n]: _value(t, v)}}
            for (t, n), v in configs.items()
        ],
        "quotas": [
            {
                "entity": [{"entityType": kind, "entityName": name} for kind, name in entity],
                "quotas": {
                    "connection_creation_rate"
                    if entity[0][0] == "ip"
                    else "producer_byte_rate": min(v, 2**31 - 1)
                },
            }
            for entity, v in quotas.items()
        ],
        "acls": [
            {
                "principal": f"User:{who}",
                "operation": what,
                "resourceType": kind,
                "resourceName": name,
                "patternType": pattern,
                "host": host,
                "permissionType": permission,
            }
            for who, what, kind, name, pattern, host, permission in sorted(acls)
        ],
        "users": [_user(n, m, i) for (n, m), i in users.items()],
    },
    _topics,
    _configs,
    _quotas,
    _acls,
    _users,
)


def _value(kind: str, value: int) -> str:
    """A value that the key of this type takes."""
    return str(value if kind == "broker" else 50_000 + value)


def _user(name: str, mechanism: str, iterations: int) -> dict[str, Any]:
    size = 32 if mechanism.endswith("256") else 64
    secret = b64encode((b"secret" * 20)[:size]).decode()
    credential = {"name": name, "mechanism": mechanism, "iterations": iterations}
    return {**credential, "salt": "c2FsdA==", "saltedPassword": secret}


def as_declared(export: dict[str, Any]) -> dict[str, Any]:
    """Return the apply that an export stands for, with the same secret for each credential."""
    return {
        "topics": export["topics"],
        "configs": [
            {name: each[name] for name in ("resourceType", "resourceName", "configs")}
            for each in export["configs"]
        ],
        "quotas": [
            {"entity": each["entity"], "quotas": each["values"]} for each in export["quotas"]
        ],
        "acls": [{k: v for k, v in acl.items() if k != "id"} for acl in export["acls"]],
        "users": [
            _user(user["name"], each["mechanism"], each["iterations"])
            for user in export["users"]
            for each in user["credentials"]
        ],
    }


def comparable(export: dict[str, Any]) -> dict[str, Any]:
    """Return the lists of an export without what is random, or depends on the size of pages.

    ACLs have random ids and are in the order of these. One user may be on two pages.
    """
    acls = sorted(({**acl, "id": ""} for acl in export["acls"]), key=json.dumps)
    users = [(user["name"], each) for user in export["users"] for each in user["credentials"]]
    return {kind: export[kind] for kind in KINDS} | {"acls": acls, "users": users}


slowly = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


@slowly
@given(declarations)
def test_an_export_applied_on_an_empty_cluster_gives_the_same_export(
    wanted: dict[str, Any],
) -> None:
    first, second = DeclaredCluster(), DeclaredCluster()
    done = first.applied(wanted)
    assert done["refused"] == 0, done
    assert done["created"] + done["changed"] == sum(map(len, wanted.values()))
    export = first.export(limit="3")
    assert "secret" not in json.dumps(export)
    again = as_declared(export)
    assert second.applied(again)["refused"] == 0
    assert comparable(second.export()) == comparable(export)
    for cluster in (first, second):
        assert cluster.is_idempotent(again)
        assert cluster.is_idempotent(wanted)


@slowly
@given(declarations, declarations)
def test_with_prune_only_what_is_declared_is_left(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    """Topics that aren't declared go only with an option of their own."""
    cluster, fresh = DeclaredCluster(), DeclaredCluster()
    known = {topic["name"]: topic for topic in before["topics"]}
    # What exists keeps its partitions and replicas: they can't be changed to any others.
    same = [
        {**topic, **{k: known[topic["name"]][k] for k in ("partitions", "replicationFactor")}}
        if topic["name"] in known
        else topic
        for topic in after["topics"]
    ]
    kept = {(u["name"], u["mechanism"]): u for u in before["users"]}
    users = [kept.get((u["name"], u["mechanism"]), u) for u in after["users"]]
    after = {**after, "topics": same, "users": users}
    assert cluster.applied(before)["refused"] == 0
    pruned = {**after, "prune": list(KINDS)}
    assert cluster.applied(pruned)["refused"] == 0
    left = cluster.export()
    assert {topic["name"] for topic in left["topics"]} == {*known, *(t["name"] for t in same)}
    assert cluster.applied({**pruned, "deleteTopics": True})["refused"] == 0
    assert fresh.applied(after)["refused"] == 0
    assert comparable(cluster.export()) == comparable(fresh.export())
    assert cluster.is_idempotent({**pruned, "deleteTopics": True})


@pytest.fixture(scope="module")
def filled() -> DeclaredCluster:
    cluster = DeclaredCluster()
    acl = {"operation": "READ", "resourceType": "TOPIC", "resourceName": "t"}
    done = cluster.applied(
        {
            "topics": [{"name": f"t{n}"} for n in range(5)],
            "configs": [
                {
                    "resourceType": "broker",
                    "resourceName": "1",
                    "configs": {"listener.name.x.ssl.key.password": "secret", "a.b": "secret"},
                }
            ],
            "acls": [{**acl, "principal": f"User:{n}"} for n in range(3)],
        }
    )
    assert done["refused"] == 0
    return cluster


def test_a_hidden_value_is_named_and_not_shown(filled: DeclaredCluster) -> None:
    (configs,) = filled.export()["configs"]
    assert configs["configs"] == {}
    assert configs["hidden"] == ["a.b", "listener.name.x.ssl.key.password"]


@pytest.mark.parametrize("limit", ["1", "2", "3", "7", "1000"])
def test_all_pages_are_one_state(filled: DeclaredCluster, limit: str) -> None:
    whole = filled.export()
    assert filled.export(limit=limit) == whole
    status, page = filled.cluster.ask("GET", "/v1/export", query={"limit": "1"})
    assert (status, len(page["topics"])) == (200, 1)
    filled.applied({"topics": [{"name": f"later-{limit}"}]})
    query = {"limit": "1", "continuation": page["continuation"]}
    _, following = filled.cluster.ask("GET", "/v1/export", query=query)
    assert following["offset"] == page["offset"] == whole["offset"]
    filled.applied(
        {
            "topics": [{"name": f"t{n}"} for n in range(5)],
            "prune": ["topics"],
            "deleteTopics": True,
        }
    )


def test_assignments_are_shown_if_asked_for_and_can_be_applied() -> None:
    cluster, other = DeclaredCluster(), DeclaredCluster()
    rows = [[1, 2], [3, 1], [2, 3]]
    cluster.applied({"topics": [{"name": "a", "assignments": rows}, {"name": "b"}]})
    assert all(topic["assignments"] == [] for topic in cluster.export()["topics"])
    for limit in ("1", "9"):
        found = cluster.export(assignments="true", limit=limit)["topics"]
        assert [(topic["name"], len(topic["assignments"])) for topic in found] == [
            ("a", 3),
            ("b", 1),
        ]
        assert found[0]["assignments"] == rows
    exact = {"topics": [{k: topic[k] for k in ("name", "assignments")} for topic in found]}
    assert cluster.is_idempotent(exact)
    assert other.applied(exact)["created"] == 2
    assert other.export(assignments="true")["topics"] == found


def test_only_some_kinds(filled: DeclaredCluster) -> None:
    found = filled.export(kinds="acls,users", limit="2")
    assert [len(found[kind]) for kind in KINDS] == [0, 0, 0, 3, 0]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"kinds": "topics,brokers"}, "kinds"),
        ({"kinds": ""}, "kinds"),
        ({"limit": "0"}, "limit"),
        ({"continuation": "a"}, None),
    ],
    ids=str,
)
def test_a_bad_question(filled: DeclaredCluster, query: dict[str, str], field: str | None) -> None:
    status, reply = filled.cluster.ask("GET", "/v1/export", query=query)
    assert (status, reply["code"]) == (400, "INVALID_REQUEST")
    assert reply["details"].get("field") == field


def test_a_token_of_other_kinds_is_refused(filled: DeclaredCluster) -> None:
    _, page = filled.cluster.ask("GET", "/v1/export", query={"limit": "1"})
    query = {"kinds": "acls", "continuation": page["continuation"]}
    status, reply = filled.cluster.ask("GET", "/v1/export", query=query)
    assert (status, reply["code"]) == (400, "INVALID_REQUEST")
