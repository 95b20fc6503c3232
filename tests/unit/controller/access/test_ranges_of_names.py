"""A list or watch of a range of names needs a right on the whole range, as in etcd."""

from base64 import b64encode
from typing import Any

import pytest

from metadata.records import (
    AccessControlEntryRecord,
    AclOperation,
    AclPatternType,
    AclPermissionType,
    AclResourceType,
)
from tests.unit.controller.access.test_guard import ALICE, ROOT, entry, made

pytestmark = pytest.mark.simulation

LITERAL, PREFIXED = AclPatternType.LITERAL, AclPatternType.PREFIXED
DENY = AclPermissionType.DENY
KEYS = ("/app", "/app-secret", "/apples/key")


def on_name(
    name: str, pattern: AclPatternType = LITERAL, number: int = 1, **more: Any
) -> AccessControlEntryRecord:
    """Return an entry about READ on a name of coordination."""
    kind, name = AclResourceType.CLUSTER, f"coordination:{name}"
    return entry(AclOperation.READ, name, kind, pattern=pattern, number=number, **more)


def with_keys(*entries: AccessControlEntryRecord, **config: Any) -> Any:
    cluster = made(nodes=1, **config)
    operations = [{"op": "upsert", "key": key, "data": b64encode(b"x").decode()} for key in KEYS]
    body = {"operations": operations}
    assert cluster.ask("POST", "/v1/coordination/commit", body, caller=ROOT)[0] == 200
    cluster.write(*entries)
    return cluster


def listed(cluster: Any, prefix: str) -> tuple[int, Any]:
    path, query = "/v1/coordination/keys", {"prefix": prefix}
    answer: tuple[int, Any] = cluster.ask("GET", path, query=query, caller=ALICE)
    return answer


def watched(cluster: Any, prefix: str) -> tuple[int, Any]:
    path, body = "/v1/coordination/watch", {"scopes": [{"prefix": prefix}]}
    answer: tuple[int, Any] = cluster.ask("POST", path, body, caller=ALICE)
    return answer


@pytest.mark.parametrize("ask", [listed, watched])
def test_a_right_on_one_key_shows_no_key_that_begins_as_it_does(ask):
    cluster = with_keys(on_name("key:/app"))
    of_one = {"key": "/app"}
    assert cluster.ask("GET", "/v1/coordination/key", query=of_one, caller=ALICE)[0] == 200
    status, reply = ask(cluster, "/app")
    assert status == 403
    lacks = "READ on CLUSTER coordination:key:/app and every name that begins so"
    assert reply["details"]["lacks"] == lacks


@pytest.mark.parametrize("ask", [listed, watched])
@pytest.mark.parametrize(
    ("entries", "prefix", "status"),
    [
        ([on_name("key:/app", PREFIXED)], "/app", 200),
        ([on_name("key:/app", PREFIXED)], "/apples/", 200),
        ([on_name("key:/app", PREFIXED)], "/ap", 403),
        ([on_name("key:/app"), on_name("key:/apples", PREFIXED, 2)], "/app", 403),
        ([on_name("", PREFIXED)], "", 200),
        ([on_name("", PREFIXED), on_name("key:/app", number=2, permission=DENY)], "/app", 403),
        ([on_name("", PREFIXED), on_name("key:/app-s", number=2, permission=DENY)], "/app", 403),
        ([on_name("", PREFIXED), on_name("key:/app-s", number=2, permission=DENY)], "/apples", 200),
        ([on_name("", PREFIXED), on_name("key:/a", PREFIXED, 2, permission=DENY)], "/app", 403),
        ([on_name("", PREFIXED), on_name("lock:/app", number=2, permission=DENY)], "/app", 200),
    ],
)
def test_an_entry_for_a_prefix_allows_a_range_and_one_that_denies_a_name_in_it_refuses(
    ask, entries, prefix, status
):
    assert ask(with_keys(*entries), prefix)[0] == status


@pytest.mark.parametrize(
    ("entries", "status"),
    [
        ([], 200),
        ([on_name("key:/app")], 200),
        ([on_name("key:/app", principal="User:bob")], 403),
        ([on_name("key:/app-s", principal="User:bob")], 403),
        ([on_name("key:/app-s", PREFIXED, principal="User:bob")], 403),
        (
            [
                on_name("key:/app-s", PREFIXED, principal="User:bob"),
                on_name("key:/app-s", number=2),
            ],
            403,
        ),
        ([on_name("key:/app-s", PREFIXED)], 200),
        ([on_name("key:/other", principal="User:bob")], 200),
    ],
)
def test_where_everybody_may_use_what_no_entry_is_about_the_whole_range_must_be_so(entries, status):
    cluster = with_keys(*entries, allow_if_no_acl=True)
    assert listed(cluster, "/app")[0] == status


@pytest.mark.parametrize("kind", ["group", "election", "lock"])
@pytest.mark.parametrize(
    ("entries", "name", "status"),
    [
        (["x"], "x", 200),
        (["x"], None, 403),
        ([""], None, 403),
        (["", PREFIXED], None, 200),
    ],
)
def test_a_list_of_all_of_a_kind_needs_a_right_on_every_name_of_the_kind(
    kind, entries, name, status
):
    named, *pattern = entries
    cluster = made(nodes=1)
    cluster.write(on_name(f"{kind}:{named}", *pattern))
    query = {"kind": kind} if name is None else {"kind": kind, "name": name}
    path = "/v1/coordination/entries"
    assert cluster.ask("GET", path, query=query, caller=ALICE)[0] == status
