"""Whoever asks is in the log under a pseudonym, which every controller finds again."""

import pytest

from metadata.pseudonyms import UNKNOWN
from metadata.records import AccessTokenRecord
from runtime.http.requests import Caller
from tests.unit.controller.erasure.test_addresses import bytes_of
from tests.unit.controller.people.people_bench import (
    ALICE,
    BOB,
    NAME,
    certificate,
    last_head,
    make_token,
    names,
    pseudonyms,
    records,
    with_people,
)


@pytest.fixture
def cluster():
    return with_people()


def test_who_changes_something_is_in_the_log_under_a_pseudonym(cluster):
    assert make_token(cluster, certificate())[0] == 200
    assert make_token(cluster, certificate(), name="b-key")[0] == 200
    assert names(cluster) == [NAME]
    said = [each.header.provenance.principal for each in cluster.batches()]
    assert said[-2:] == pseudonyms(cluster) * 2
    assert [each.made_by for each in records(cluster, AccessTokenRecord)] == [
        *pseudonyms(cluster) * 2
    ]
    cluster.run(1)
    assert NAME.encode() not in bytes_of(cluster)
    cluster.assert_equal()


def test_for_whom_a_broker_asks_has_a_pseudonym_too():
    cluster = with_people(delegations={7: frozenset({"User:*", "User:ops@example.com"})})
    broker = Caller("Broker:7", "certificate", "10.0.0.7")
    for place, who in enumerate((ALICE, "User:ops@example.com")):
        headers = {"x-logberg-on-behalf-of": who}
        assert make_token(cluster, broker, name=f"key-{place}", headers=headers)[0] == 200
    said = [each.header.provenance.on_behalf_of for each in cluster.batches()][-2:]
    assert said == [*pseudonyms(cluster), "User:ops@example.com"], "settings name ops"


def test_two_first_requests_at_once_give_one_pseudonym(cluster):
    asked = [
        cluster.send("GET", "/v1/caller", caller=certificate(), node=1),
        cluster.send("GET", "/v1/caller", caller=certificate(), node=1),
    ]
    cluster.run_until(lambda: all(asked))
    assert names(cluster) == [NAME]
    assert [reply.status for [reply] in asked] == [200, 200]


def test_a_name_that_only_the_log_gives_is_refused_at_a_login(cluster):
    make_token(cluster, certificate())
    [given] = pseudonyms(cluster)
    for method in ("certificate", "scram", "unix-socket"):
        for principal in (given, UNKNOWN):
            status, reply = make_token(cluster, Caller(principal, method, "10.0.0.8"), name=method)
            assert (status, reply["code"]) == (403, "CLUSTER_AUTHORIZATION_FAILED"), method
            assert "form of a pseudonym" in reply["message"]
    assert make_token(cluster, Caller(given, "token", "10.0.0.8"), name="by-token")[0] == 200


@pytest.mark.parametrize("principal", ["User:carol", "User:root", "User:ANONYMOUS", "Broker:3"])
def test_others_keep_their_names(principal):
    cluster = with_people(super_users=frozenset({"User:root"}))
    make_token(cluster, Caller(principal, "token", "10.0.0.7"))
    assert last_head(cluster).principal == principal
    assert not pseudonyms(cluster)


def test_a_super_user_that_the_patterns_cover_keeps_its_name():
    cluster = with_people(authorization="on", super_users=frozenset({BOB}))
    assert make_token(cluster, certificate(BOB))[0] == 200
    assert last_head(cluster).principal == BOB


def test_a_standby_knows_who_has_a_pseudonym_and_sends_others_to_the_leader(cluster):
    status, reply = cluster.ask("GET", "/v1/caller", caller=certificate(), node=2)
    assert (status, reply["leaderId"]) == (421, 1)
    make_token(cluster, certificate())
    cluster.run(0.5)
    status, reply = cluster.ask("GET", "/v1/caller", caller=certificate(), node=2)
    assert [reply["principal"]] == pseudonyms(cluster)


def test_the_next_leader_finds_the_pseudonym(cluster):
    make_token(cluster, certificate())
    cluster.run(0.5)
    cluster.lead(2)
    make_token(cluster, certificate(), name="b-key")
    assert [last_head(cluster).principal] == pseudonyms(cluster)


def test_a_restarted_controller_finds_it_too(cluster):
    make_token(cluster, certificate())
    cluster.run(0.5)
    for node in (1, 2, 3):
        cluster.kill(node)
    for node in (1, 2, 3):
        cluster.start(node)
    cluster.run(0.5)
    cluster.lead(2)
    cluster.run_until(lambda: not cluster.leader.awaits_subject_keys)
    make_token(cluster, certificate(), name="b-key")
    assert [last_head(cluster).principal] == pseudonyms(cluster)


def test_joined_changes_have_one_pseudonym(cluster):
    topics = [{"name": name, "numPartitions": 1, "replicationFactor": 1} for name in "ab"]
    changes = [
        {"method": "POST", "path": "/v1/topics", "body": {"topics": [topic]}} for topic in topics
    ]
    status, reply = cluster.ask("POST", "/v1/changes", {"changes": changes}, caller=certificate())
    assert status == 200
    assert {each["status"] for each in reply["outcomes"]} <= {200, 409, 400, 503}
    assert not any("pseudonym" in str(each) for each in reply["outcomes"])
    assert names(cluster) == [NAME]
