"""Which access control entry decides: each case of the table, by the rules and over HTTP."""

import tomllib
from pathlib import Path
from random import Random

import pytest

from metadata.acl_rules import AclPolicy, Action, authorize
from metadata.buckets import BucketMap
from metadata.image import EMPTY, MetadataDelta
from metadata.records import (
    AccessControlEntryRecord,
    AclOperation,
    AclPatternType,
    AclPermissionType,
    AclResourceType,
    FeatureLevelRecord,
    RemoveAccessControlEntryRecord,
)
from tests.reference import access
from tests.reference.access import Entry
from tests.unit.controller.cluster import Cluster

CASES = tomllib.loads((Path(__file__).parent / "cases" / "acl_precedence.toml").read_text())["case"]


def entry_of(text, uuid=b"\0" * 16):
    permission, principal, operation, kind, pattern, name, *host = text.split()
    return AccessControlEntryRecord(
        uuid,
        AclResourceType[kind],
        name,
        AclPatternType[pattern],
        principal,
        host[0] if host else "*",
        AclOperation[operation],
        AclPermissionType[permission],
    )


def image_of(*records):
    delta = MetadataDelta(EMPTY)
    delta.replay_all(records, 0)
    delta.finish_batch(len(records), 1, 0)
    return delta.apply()


def action_of(text):
    principal, operation, kind, name, *host = text.split()
    address = host[0] if host else "10.0.0.7"
    return Action(principal, address, AclOperation[operation], AclResourceType[kind], name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_rules_decide(case):
    dice = Random(case["name"])
    entries = [entry_of(text, dice.randbytes(16)) for text in case.get("acls", ())]
    policy = AclPolicy(frozenset(case.get("super_users", ())), case.get("allow_if_no_acl", False))
    verdict = authorize(image_of(*entries).acls, action_of(case["ask"]), policy)
    said = f"{'allowed' if verdict.allowed else 'denied'}: {verdict.reason}"
    assert said == case["expect"]
    if "entry" in case:
        assert verdict.entry == entry_of(case["entry"], verdict.entry.id)


@pytest.fixture(scope="module")
def clusters():
    """A cluster for each setting; the cases share it and remove their entries."""
    return {}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_cluster_decides(clusters, case):
    settings = (tuple(case.get("super_users", ())), case.get("allow_if_no_acl", False))
    if settings not in clusters:
        clusters[settings] = Cluster(
            nodes=1, super_users=frozenset(settings[0]), allow_if_no_acl=settings[1]
        )
        clusters[settings].write(FeatureLevelRecord("metadata.version", 32))
    cluster = clusters[settings]
    if "acls" in case:
        body = {"acls": [in_json(text) for text in case["acls"]]}
        status, reply = cluster.ask("POST", "/v1/acls", body)
        assert status == 200
        assert [acl["error"] for acl in reply["acls"]] == [None] * len(case["acls"])
    action = action_of(case["ask"])
    query = {
        "principal": action.principal,
        "host": action.host,
        "operation": action.operation.name,
        "resourceType": action.resource_type.name,
        "resourceName": action.resource_name,
    }
    status, reply = cluster.ask("GET", "/v1/acls/check", query=query)
    assert status == 200
    said = f"{'allowed' if reply['allowed'] else 'denied'}: {reply['reason']}"
    assert said == case["expect"]
    if "entry" in case:
        assert {**reply["acl"], "id": ""} == {**in_json(case["entry"]), "id": ""}
    status, reply = cluster.ask("DELETE", "/v1/acls", {"filters": [{}]})
    assert reply["filters"][0]["count"] == len(case.get("acls", ()))


def in_json(text):
    entry = entry_of(text)
    return {
        "resourceType": AclResourceType(entry.resource_type).name,
        "resourceName": entry.resource_name,
        "patternType": AclPatternType(entry.pattern_type).name,
        "principal": entry.principal,
        "host": entry.host,
        "operation": AclOperation(entry.operation).name,
        "permissionType": AclPermissionType(entry.permission_type).name,
    }


def scanned(entries, action):
    """Decide in the plain way: the reference looks at every entry."""
    plain = [Entry(**in_words(entry)) for entry in entries]
    asked = access.Action(
        action.principal,
        action.host,
        action.operation.name,
        action.resource_type.name,
        action.resource_name,
    )
    return access.judge(plain, asked, (), allowed_without_entries=False)


def in_words(entry):
    return {
        "kind": AclResourceType(entry.resource_type).name,
        "name": entry.resource_name,
        "pattern": AclPatternType(entry.pattern_type).name,
        "principal": entry.principal,
        "operation": AclOperation(entry.operation).name,
        "permission": AclPermissionType(entry.permission_type).name,
        "host": entry.host,
    }


def test_the_index_says_what_a_scan_of_all_entries_says():
    dice = Random(7)
    names = ["a", "ab", "abc", "b", "*", "a*"]
    operations = [op for op in AclOperation if op.value >= AclOperation.ALL]
    for _ in range(60):
        entries = [
            AccessControlEntryRecord(
                dice.randbytes(16),
                dice.choice((AclResourceType.TOPIC, AclResourceType.GROUP)),
                dice.choice(names),
                dice.choice((AclPatternType.LITERAL, AclPatternType.PREFIXED)),
                dice.choice(("User:alice", "User:bob", "User:*")),
                dice.choice(
                    ("*", "10.0.0.1", "10.0.0.2", "10.0.0.0/31", "10.0.0.9/30", "0.0.0.0/0")
                ),
                dice.choice(operations),
                dice.choice((AclPermissionType.ALLOW, AclPermissionType.DENY)),
            )
            for _ in range(dice.randrange(12))
        ]
        acls = image_of(*entries).acls
        for _ in range(60):
            action = Action(
                dice.choice(("User:alice", "User:bob", "User:carol")),
                dice.choice(("10.0.0.1", "10.0.0.2", "10.0.0.8")),
                dice.choice(operations),
                dice.choice((AclResourceType.TOPIC, AclResourceType.GROUP)),
                dice.choice([*names, "abcd", "c"]),
            )
            said, wanted = authorize(acls, action, AclPolicy()), scanned(entries, action)
            assert (said.allowed, said.reason) == (wanted.allowed, wanted.reason)
            named = [] if said.entry is None else [Entry(**in_words(said.entry))]
            assert wanted.entries.issuperset(named)
            assert len(named) == bool(wanted.entries)


HOSTS = ("10.0.0.0/8", "10.9.9.9/8", "10.0.0.0/9", "no/range")


def test_what_is_derived_is_the_same_however_entries_came_and_went():
    entries = [
        entry_of(f"ALLOW User:u READ TOPIC LITERAL t{n % 20} {HOSTS[n % 4]}", bytes([n]) * 16)
        for n in range(40)
    ]
    # Of some contents all entries go, of some one of two, of some none.
    left = [entry for n, entry in enumerate(entries) if n % 20 >= 10 and n >= 15]
    gone = [RemoveAccessControlEntryRecord(entry.id) for entry in entries if entry not in left]
    once = image_of(*entries, *gone)
    plain = image_of(*left)
    assert once.same_state(plain)
    assert once.same_derived(plain)
    steps = EMPTY
    for offset, record in enumerate((*entries, *gone)):
        delta = MetadataDelta(steps)
        delta.replay(record, offset)
        delta.finish_batch(offset + 1, 1, 0)
        steps = delta.apply()
    assert steps.same_derived(plain)


def test_a_check_costs_what_matches_and_not_what_there_is(monkeypatch):
    looks = []
    for name in ("get", "__contains__", "__getitem__"):
        real = getattr(BucketMap, name)

        def counted(self, *args, real=real):
            looks.append(args)
            return real(self, *args)

        monkeypatch.setattr(BucketMap, name, counted)

    def cost(others):
        entries = [
            entry_of(f"ALLOW User:u{n} READ TOPIC LITERAL other-{n}", n.to_bytes(16, "big"))
            for n in range(others)
        ]
        image = image_of(
            *entries, entry_of("ALLOW User:alice READ TOPIC LITERAL orders", b"x" * 16)
        )
        looks.clear()
        assert authorize(image.acls, action_of("User:alice READ TOPIC orders"), AclPolicy()).allowed
        return len(looks)

    assert cost(5_000) == cost(5) <= 40


def test_a_check_costs_no_more_for_ranges_that_are_elsewhere(monkeypatch):
    looks = []
    real = BucketMap.get
    monkeypatch.setattr(
        BucketMap, "get", lambda self, *args: looks.append(args) or real(self, *args)
    )

    def cost(others):
        entries = [
            entry_of(
                f"ALLOW User:alice READ TOPIC LITERAL orders 10.{n // 256}.{n % 256}.0/24",
                n.to_bytes(16, "big"),
            )
            for n in range(1, others)
        ]
        image = image_of(*entries)
        looks.clear()
        authorize(image.acls, action_of("User:alice READ TOPIC orders 10.0.1.7"), AclPolicy())
        return len(looks)

    assert cost(3_000) == cost(3) <= 60
