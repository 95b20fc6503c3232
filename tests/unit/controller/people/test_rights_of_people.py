"""Entries about a name count for its login, and whoever can't be told apart is refused."""

import pytest

from metadata.pseudonyms import UNKNOWN
from metadata.records import AttemptsRecord
from runtime.http.requests import Caller
from runtime.sockets.attempts import Attempt
from tests.unit.controller.erasure.test_addresses import bytes_of
from tests.unit.controller.people.people_bench import (
    ALICE,
    BOB,
    COVERED,
    NAME,
    ROOT,
    allow,
    certificate,
    entry,
    erase,
    guarded,
    make_token,
    names,
    pseudonyms,
    records,
    set_covered,
    with_people,
)


@pytest.fixture
def cluster():
    return with_people()


def test_entries_about_a_name_count_for_its_login():
    cluster = guarded()
    cluster.ask("POST", "/v1/topics", {"topics": [{"name": "orders"}]}, caller=ROOT)

    def seen(who):
        return cluster.ask("GET", "/v1/topics/orders", caller=certificate(who))[0]

    assert (seen(ALICE), seen(BOB)) == (403, 403)
    allow(cluster, entry(), entry("User:*"), entry(BOB, permissionType="DENY"))
    assert (seen(ALICE), seen(BOB)) == (seen_by_root(cluster), 403)


def seen_by_root(cluster):
    return cluster.ask("GET", "/v1/topics/orders", caller=ROOT)[0]


def test_entries_in_clear_from_before_the_setting_keep_a_person_out():
    cluster = guarded()
    set_covered(cluster, ())
    allow(cluster, entry(permissionType="DENY"), entry("User:*"))
    set_covered(cluster, COVERED)
    status, reply = cluster.ask("GET", "/v1/topics/orders", caller=certificate())
    assert (status, "names somebody in clear" in reply["message"]) == (403, True)
    cluster.ask("DELETE", "/v1/acls", {"filters": [{"principal": ALICE}]}, caller=ROOT)
    allow(cluster, entry(permissionType="DENY"))
    assert cluster.ask("GET", "/v1/topics/orders", caller=certificate())[0] == 403
    assert names(cluster) == [NAME]


def test_who_is_denied_something_is_not_erased():
    cluster = guarded()
    allow(cluster, entry(permissionType="DENY"))
    status, reply = erase(cluster)
    assert (status, "is not denied it" in reply["message"]) == (400, True)
    cluster.ask("DELETE", "/v1/acls", {"filters": [{"principal": ALICE}]}, caller=ROOT)
    assert erase(cluster)[0] == 200


def test_nothing_is_given_to_whoever_is_erased(cluster):
    make_token(cluster, certificate())
    [alice] = pseudonyms(cluster)
    cluster.hold_the_turn()
    late = cluster.send("POST", "/v1/erasures", {"subject": f"user:{NAME}"}, caller=ROOT)
    status, reply = make_token(cluster, certificate(), owner=ALICE, name="b-key")
    assert (status, reply["code"]) == (404, "NOT_FOUND"), "it was asked under the old pseudonym"
    assert late[0].status == 200
    for who in (alice, UNKNOWN):
        status, reply = make_token(cluster, owner=who, name="c-key")
        assert status == 404, reply
        assert allow(cluster, entry(who))[0] == 404
    assert make_token(cluster, certificate(), owner=ALICE, name="d-key")[0] == 200


def test_names_that_no_key_opens_keep_new_people_out(cluster):
    make_token(cluster, certificate())
    # As if the keys were others: nobody can say whose the pseudonym is.
    giving = cluster.leader._people._giving
    giving.people._names.clear()
    giving.people._pseudonyms.clear()
    giving._standings.clear()
    for who in (ALICE, BOB):
        status, reply = make_token(cluster, certificate(who), name="b-key")
        assert (status, reply["code"]) == (403, "SECURITY_DISABLED"), reply
    assert len(pseudonyms(cluster)) == 1


@pytest.mark.parametrize("path", ["/health/live", "/v1/topics"])
def test_a_claim_that_nothing_grants_writes_nothing(path):
    cluster = guarded()
    for who in (Caller(), certificate("User:carol")):
        headers = {"x-logberg-on-behalf-of": ALICE}
        cluster.ask("GET", path, caller=who, headers=headers)
    assert not pseudonyms(cluster)


def test_probes_are_answered_while_names_can_not_be_opened(cluster):
    make_token(cluster, certificate())
    cluster.run(1)
    for key in cluster.keys.values():
        key.subjects.keys = None
    for path in ("/health/live", "/health/ready", "/metrics"):
        assert cluster.ask("GET", path, caller=Caller())[0] == 200
    assert cluster.ask("GET", "/v1/topics", caller=certificate())[0] == 429


def test_an_error_after_a_pseudonym_was_given_is_an_answer(cluster, monkeypatch):
    def broken(_request):
        raise OSError(5, "the disk")

    monkeypatch.setattr(cluster.leader._http.snapshots, "listed", broken)
    assert cluster.ask("GET", "/v1/snapshots", caller=certificate())[0] == 503
    assert names(cluster) == [NAME]


def test_refused_attempts_name_nobody():
    cluster = guarded(attempts_interval_s=0.2)
    carol = Caller("User:carol", "token", "10.0.0.7")
    for node in (1, 2):
        cluster.ask("GET", "/v1/topics/x", caller=certificate(), node=node)
    make_token(cluster, certificate(), owner=BOB)
    cluster.ask("GET", "/v1/users/bob@example.com", caller=carol)
    cluster.ask("GET", "/v1/topics/x", caller=carol, headers={"x-logberg-on-behalf-of": BOB})
    why = "no credential of alice@example.com fits"
    shown = Attempt("", "scram", "sasl", f"user:{NAME}", "10.0.0.9", "UNAUTHENTICATED", why)
    cluster.processes[1].run(lambda: cluster.controllers[1].note_attempt(shown))
    cluster.run(2)
    found = records(cluster, AttemptsRecord)
    assert {each.principal for each in found} <= {*pseudonyms(cluster), UNKNOWN, "User:carol", ""}
    assert names(cluster) == [NAME]
    assert b"@example.com" not in bytes_of(cluster)
