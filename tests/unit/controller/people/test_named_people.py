"""A person whom a request names is in the log under a pseudonym, and is found by name and by it."""

from base64 import b64encode

import pytest

from metadata.records import (
    AccessControlEntryRecord,
    AccessTokenRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    PseudonymRecord,
)
from runtime.http.requests import Caller
from tests.unit.controller.erasure.test_addresses import bytes_of
from tests.unit.controller.people.people_bench import (
    ALICE,
    BOB,
    NAME,
    ROOT,
    allow,
    certificate,
    entry,
    guarded,
    make_token,
    names,
    pseudonyms,
    records,
    with_people,
)


@pytest.fixture
def cluster():
    return with_people()


def test_entries_quotas_and_tokens_name_pseudonyms():
    cluster = guarded()
    user = {"entityType": "user", "entityName": NAME}
    quota = {"entity": [user], "operations": [{"key": "producer_byte_rate", "value": 1.0}]}
    asked = [
        ("/v1/acls", {"acls": [entry(), entry(BOB)]}),
        (
            "/v1/acls",
            {"acls": [entry("User:*", resourceType="USER", resourceName=ALICE)]},
        ),
        ("/v1/quotas", {"entries": [quota]}),
        ("/v1/tokens", {"owner": ALICE, "renewers": [BOB, "User:ci"]}),
    ]
    for path, body in asked:
        status, reply = cluster.ask("POST", path, body, caller=ROOT)
        assert status == 200, reply
    assert make_token(cluster, owner=ALICE)[0] == 200
    assert sorted(names(cluster)) == [NAME, BOB.removeprefix("User:")]
    named = dict(zip(names(cluster), pseudonyms(cluster), strict=True))
    alice, bob = named[NAME], named[BOB.removeprefix("User:")]
    entries = records(cluster, AccessControlEntryRecord)
    assert [each.principal for each in entries] == [alice, bob, "User:*"]
    assert entries[2].resource_name == alice
    [quota] = records(cluster, ClientQuotaRecord)
    assert quota.entity[0].entity_name == alice.removeprefix("User:")
    [token] = records(cluster, DelegationTokenRecord)
    assert (token.owner, set(token.renewers)) == (alice, {bob, "User:ci"})
    [access] = records(cluster, AccessTokenRecord)
    assert access.principal == alice
    cluster.run(1)
    assert b"@example.com" not in bytes_of(cluster)


def test_questions_by_name_find_what_the_pseudonym_has():
    cluster = guarded()
    user = {"entityType": "user", "entityName": NAME}
    quota = {"entity": [user], "operations": [{"key": "producer_byte_rate", "value": 1.0}]}
    cluster.ask("POST", "/v1/quotas", {"entries": [quota]}, caller=ROOT)
    allow(cluster, entry())
    cluster.ask("POST", "/v1/tokens", {"owner": ALICE}, caller=ROOT)
    [alice] = pseudonyms(cluster)
    for who, found in ((ALICE, 1), (alice, 1), (BOB, 0)):
        bare = who.removeprefix("User:")
        _, acls = cluster.ask("GET", "/v1/acls", query={"principal": who}, caller=ROOT)
        _, quotas = cluster.ask("GET", "/v1/quotas/resolve", query={"user": bare}, caller=ROOT)
        _, tokens = cluster.ask("GET", "/v1/tokens", query={"owner": who}, caller=ROOT)
        counts = len(acls["acls"]), len(quotas["quotas"]), len(tokens["tokens"])
        assert counts == (found,) * 3, who
    _, reply = cluster.ask("DELETE", "/v1/acls", {"filters": [{"principal": ALICE}]}, caller=ROOT)
    assert reply["filters"][0]["count"] == 1


def test_declared_state_names_pseudonyms(cluster):
    user = {"entityType": "user", "entityName": NAME}
    declared = {
        "acls": [entry(BOB)],
        "quotas": [{"entity": [user], "quotas": {"producer_byte_rate": 2.0}}],
    }
    for dry_run in (True, False, False):
        status, reply = cluster.ask(
            "POST", "/v1/apply", {**declared, "dryRun": dry_run}, caller=ROOT
        )
        assert status == 200, reply
        assert bool(pseudonyms(cluster)) is not dry_run
    assert reply["unchanged"] == 2, "what is declared by name is there"
    assert sorted(names(cluster)) == [NAME, BOB.removeprefix("User:")]


def test_who_may_not_name_anybody_writes_nothing_about_them():
    cluster = guarded()
    carol = Caller("User:carol", "token", "10.0.0.7")
    assert allow(cluster, entry(), caller=carol)[0] == 403
    assert not pseudonyms(cluster)
    assert allow(cluster, entry(), dryRun=True)[0] == 200
    assert not pseudonyms(cluster), "a dry run writes nothing"


def test_a_change_that_its_decision_refuses_gives_nobody_a_pseudonym():
    """No right of a route says for whom somebody may make delegation tokens."""
    cluster = guarded()
    drawn = [f"User:drawn-{number}@example.com" for number in range(100)]
    mallory = certificate("User:mallory@example.com")
    body = {"owner": BOB, "renewers": drawn}
    status, reply = cluster.ask("POST", "/v1/tokens", body, caller=mallory)
    assert (status, reply["code"]) == (403, "DELEGATION_TOKEN_AUTHORIZATION_FAILED")
    assert names(cluster) == ["mallory@example.com"]
    status, _ = cluster.ask("POST", "/v1/tokens", {"renewers": drawn[:2]}, caller=mallory)
    assert (status, len(names(cluster))) == (200, 3)


@pytest.mark.parametrize(
    ("path", "body", "why"),
    [
        (
            "/v1/users/scram",
            {
                "upsertions": [
                    {
                        "name": NAME,
                        "mechanism": "SCRAM-SHA-256",
                        "iterations": 4096,
                        "salt": b64encode(b"some salt").decode(),
                        "saltedPassword": b64encode(bytes(32)).decode(),
                    }
                ]
            },
            "SCRAM login shows its name",
        ),
        (
            "/v1/apply",
            {"users": [{"name": NAME, "mechanism": "SCRAM-SHA-256"}], "dryRun": True},
            "SCRAM login shows its name",
        ),
        (
            "/v1/users/scram",
            {"deletions": [{"name": NAME, "mechanism": "SCRAM-SHA-256"}]},
            "SCRAM login shows its name",
        ),
        ("/v1/revocations", {"principal": ALICE}, "by its serial"),
        ("/v1/revocations", {"principal": "User:p-aaaaaaaaaaaaa"}, "by its serial"),
        (
            "/v1/acls",
            {"acls": [entry(resourceType="USER", resourceName="al", patternType="PREFIXED")]},
            "no prefix",
        ),
        (
            "/v1/import",
            {"records": b64encode(b"\x90").decode(), "source": "zk", "revision": 1},
            "names in clear",
        ),
    ],
)
def test_what_would_put_a_name_into_the_log_is_refused(cluster, path, body, why):
    status, reply = cluster.ask("POST", path, body, caller=ROOT)
    assert (status, reply["code"]) == (400, "INVALID_REQUEST")
    assert why in reply["message"]


def test_blocks_show_neither_order_nor_length_of_names(cluster):
    people = [f"User:{who}@example.com" for who in ("zoe", "anna", "bob-the-builder", "carl")]
    allow(cluster, *map(entry, people))
    given = records(cluster, PseudonymRecord)
    assert [each.pseudonym for each in given] == sorted(each.pseudonym for each in given)
    assert len({len(each.name) for each in given}) == 1
    assert sorted(names(cluster)) == sorted(who.removeprefix("User:") for who in people)
