"""`GET /v1/watch` finds a person by the name, as long as the name has a pseudonym."""

import json

import pytest

from controller.people.giving import Giving
from metadata.records import ConfigRecord, PseudonymRecord
from runtime.http.requests import Caller
from runtime.sockets.attempts import Attempt
from tests.unit.controller.erasure.test_addresses import bytes_of
from tests.unit.controller.erasure.test_erasure import all_destroyed, set_credential
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
    pseudonyms,
    records,
    set_covered,
    with_people,
)

BOBS_NAME = BOB.removeprefix("User:")


@pytest.fixture
def cluster():
    """Alice did something, has a quota and was refused something. Nobody else has a pseudonym."""
    cluster = guarded(attempts_interval_s=0.2)
    make_token(cluster, owner=ALICE)
    user = {"entityType": "user", "entityName": NAME}
    quota = {"entity": [user], "operations": [{"key": "producer_byte_rate", "value": 1.0}]}
    cluster.ask("POST", "/v1/quotas", {"entries": [quota]}, caller=ROOT)
    cluster.ask("GET", "/v1/topics/x", caller=certificate())
    login = Attempt("", "scram", "sasl", f"user:{NAME}", "10.0.0.9", "UNAUTHENTICATED", "wrong")
    cluster.processes[1].run(lambda: cluster.controllers[1].note_attempt(login))
    cluster.run(2)
    return cluster


def ask(cluster, resource, caller=ROOT, **more):
    query = {"resource": resource, "from": "0", **more.pop("query", {})}
    return cluster.ask("GET", "/v1/watch", query=query, caller=caller, **more)


def watch(cluster, resource, **more):
    status, reply = ask(cluster, resource, **more)
    assert status == 200, reply
    assert reply["resource"] == resource
    return reply["records"]


def kinds(reply):
    return [each["record"]["type"] for each in json.loads(reply.body)["records"]]


def waiting(cluster, resource):
    query = {"resource": resource, "waitMs": "20000"}
    reply = cluster.send("GET", "/v1/watch", query=query, caller=ROOT, node=1)
    cluster.run(0.5)
    assert not reply
    return reply


@pytest.mark.parametrize(
    ("before", "least"),
    [("user:", 3), ("by:User:", 1), ("tried:user:", 1), ("quota:user=", 1)],
)
def test_the_name_finds_what_the_pseudonym_has(cluster, before, least):
    [alice] = [each.removeprefix("User:") for each in pseudonyms(cluster)]
    by_pseudonym = watch(cluster, before + alice)
    assert len(by_pseudonym) >= least
    for node in (1, 2, 3):
        assert watch(cluster, before + NAME, node=node) == by_pseudonym


@pytest.mark.parametrize("resource", [f"topic:{NAME}", f"user:{NAME}x", "user:*@example.com"])
def test_what_is_no_name_of_this_person_finds_nothing(cluster, resource):
    assert watch(cluster, resource) == []
    assert len(pseudonyms(cluster)) == 1


def test_nobody_gets_a_pseudonym_because_somebody_watches(cluster):
    assert watch(cluster, f"user:{BOBS_NAME}") == []
    assert len(pseudonyms(cluster)) == 1
    cluster.run(1)
    assert BOBS_NAME.encode() not in bytes_of(cluster)


def test_what_the_log_has_under_the_name_itself_is_found_too():
    """From before the setting, or about what keeps its name in the log."""
    cluster = with_people()
    set_covered(cluster, ())
    set_credential(cluster, NAME)
    set_covered(cluster, COVERED)
    make_token(cluster, owner=ALICE)
    found = [each["record"]["type"] for each in watch(cluster, f"user:{NAME}")]
    assert found == ["USER_SCRAM_CREDENTIAL_RECORD", "PSEUDONYM_RECORD", "ACCESS_TOKEN_RECORD"]


def test_who_gets_a_pseudonym_while_somebody_waits_is_found(cluster):
    reply = waiting(cluster, f"user:{BOBS_NAME}")
    make_token(cluster, name="other-key", owner="User:ci")
    make_token(cluster, name="b-key", owner=BOB)
    cluster.run_until(lambda: bool(reply))
    found = kinds(reply[0])
    start = json.loads(reply[0].body)["nextFrom"]
    more = watch(cluster, f"user:{BOBS_NAME}", query={"from": start})
    assert [*found, *(each["record"]["type"] for each in more)] == [
        "PSEUDONYM_RECORD",
        "ACCESS_TOKEN_RECORD",
    ]


def test_after_an_erasure_the_name_finds_nothing(cluster):
    [alice] = [each.removeprefix("User:") for each in pseudonyms(cluster)]
    by_name, by_pseudonym = waiting(cluster, f"user:{NAME}"), waiting(cluster, f"user:{alice}")
    assert erase(cluster)[0] == 200
    cluster.run_until(lambda: all_destroyed(cluster))
    cluster.run(1)
    assert "SUBJECT_ERASED_RECORD" in kinds(by_pseudonym[0])
    assert not by_name, "an answer would say whose pseudonym was erased"
    cluster.run_until(lambda: bool(by_name))
    assert kinds(by_name[0]) == []
    assert watch(cluster, f"user:{NAME}") == []


def test_who_may_not_watch_hears_nothing_about_a_name(cluster, monkeypatch):
    """The name is not looked up before the request is allowed."""
    asked, found = [], Giving.found

    def noting(self, principal):
        asked.append(principal)
        return found(self, principal)

    monkeypatch.setattr(Giving, "found", noting)
    for caller in (Caller(), Caller("User:carol", "token", "10.0.0.7"), certificate(BOB)):
        for node in (1, 2):
            cluster.run(0.5)
            about_alice, about_zoe = (
                ask(cluster, f"user:{who}", caller=caller, node=node)
                for who in (NAME, "zoe@example.com")
            )
            assert about_alice == about_zoe
            assert about_alice[0] in (401, 403)
    assert ALICE not in asked
    watch(cluster, f"user:{NAME}")
    assert ALICE in asked


def test_a_right_on_the_audit_log_is_needed_and_enough(cluster):
    audit = {"resourceType": "CLUSTER", "resourceName": "audit", "operation": "READ"}
    carol = Caller("User:carol", "token", "10.0.0.7")
    assert ask(cluster, f"user:{NAME}", caller=carol)[0] == 403
    assert allow(cluster, entry(carol.principal, **audit))[0] == 200
    assert watch(cluster, f"user:{NAME}", caller=carol)


def test_while_names_can_not_be_opened_a_watch_by_name_is_refused(cluster):
    """An empty answer would say that there is nothing about this person."""
    [alice] = pseudonyms(cluster)
    reply = waiting(cluster, f"user:{NAME}")
    for key in cluster.keys.values():
        key.subjects.keys = None
    for who in (NAME, BOBS_NAME):
        status, said = ask(cluster, f"user:{who}")
        assert (status, said["code"]) == (429, "THROTTLED")
    assert watch(cluster, f"user:{alice.removeprefix('User:')}")
    assert ask(cluster, "topic:orders")[0] == 200
    cluster.write(ConfigRecord(2, "orders", "retention.ms", "1"))
    cluster.run_until(lambda: bool(reply))
    assert reply[0].status == 429


def test_a_watched_name_is_kept_nowhere(cluster):
    watch(cluster, f"user:{NAME}")
    waiting(cluster, f"user:{NAME}")
    cluster.run(30)
    assert NAME.encode() not in bytes_of(cluster)
    assert NAME not in str(cluster.logs.entries)
    assert len(records(cluster, PseudonymRecord)) == 1
