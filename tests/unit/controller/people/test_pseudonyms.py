"""A person is in the log under a pseudonym only, and an erasure ends what ties it to the name."""

import itertools
from base64 import b64encode

import pytest

from metadata.features import BASE
from metadata.pseudonyms import UNKNOWN, number_of_pseudonym
from metadata.records import (
    AccessControlEntryRecord,
    AccessTokenRecord,
    AttemptsRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    PseudonymRecord,
    SubjectErasedRecord,
)
from metadata.sealed_texts import number_of_text
from metadata.uuids import uuid7, uuid_text
from runtime.http.requests import Caller
from runtime.sockets.attempts import Attempt
from tests.unit.controller.erasure.test_addresses import bytes_of
from tests.unit.controller.erasure.test_erasure import all_destroyed, from_disk, set_credential
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
    with_people,
)


@pytest.fixture
def cluster():
    return with_people()


def last_head(cluster):
    return cluster.batches()[-1].header.provenance


# -- who asks -----------------------------------------------------------------------------


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
    cluster = guarded_by(BOB)
    assert make_token(cluster, certificate(BOB))[0] == 200
    assert last_head(cluster).principal == BOB


def guarded_by(principal):
    return with_people(authorization="on", super_users=frozenset({principal}))


def set_covered(cluster, patterns):
    """Let the settings of all controllers name other people."""
    for controller in cluster.controllers.values():
        controller._people._giving.covering._patterns = patterns
        controller._leader.clients.erasures._has_pseudonym.__self__._patterns = patterns


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


# -- whom a request names ---------------------------------------------------------------------


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


# -- rights -----------------------------------------------------------------------------------


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
    def broken(_call):
        raise OSError(5, "the disk")

    monkeypatch.setattr(cluster.leader._http.api, "_list_snapshots", broken)
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


# -- erasure ----------------------------------------------------------------------------------


def test_an_erasure_ends_what_ties_name_and_pseudonym(cluster):
    make_token(cluster, certificate(), owner=ALICE)
    make_token(cluster, certificate(BOB), name="b-key")
    alice = pseudonyms(cluster)[0]
    status, reply = erase(cluster)
    assert status == 200, reply
    assert (reply["subject"], reply["accessTokens"]) == (f"user:{alice[5:]}", 1)
    cluster.run_until(lambda: all_destroyed(cluster))
    assert names(cluster) == [None, "bob@example.com"]
    cluster.run(1)
    assert NAME.encode() not in bytes_of(cluster)
    for node in (1, 2, 3):
        assert names(cluster, from_disk(cluster, node)) == [None, "bob@example.com"]
        people = cluster.controllers[node]._people._giving.people
        assert (people.name_of(alice[5:]), people.pseudonym_of(NAME)) == (None, None)
    cluster.assert_equal()


def test_no_number_in_the_log_follows_from_a_name(cluster):
    make_token(cluster, certificate())
    erase(cluster)
    key = cluster.keys[1]
    guesses = {key.number_of(f"user:{NAME}", times) for times in range(3)}
    guesses |= {key.number_of(ALICE, times) for times in range(3)}
    [erased] = records(cluster, SubjectErasedRecord)
    assert not guesses & set(erased.numbers)
    assert erased.numbers[0] == number_of_pseudonym(pseudonyms(cluster)[0][5:])


def test_who_comes_back_has_another_pseudonym_and_none_of_the_rights():
    cluster = guarded()
    cluster.ask("POST", "/v1/topics", {"topics": [{"name": "orders"}]}, caller=ROOT)
    allow(cluster, entry())
    assert erase(cluster)[0] == 200
    status, _ = cluster.ask("GET", "/v1/topics/orders", caller=certificate())
    assert status == 403
    first, second = pseudonyms(cluster)
    assert first != second
    cluster.run_until(lambda: all_destroyed(cluster))
    assert names(cluster) == [None, NAME]


def test_whom_nobody_knows_can_not_be_erased(cluster):
    never = "user:p-aaaaaaaaaaaaa"
    make_token(cluster, certificate())
    [alice] = pseudonyms(cluster)
    assert erase(cluster, f"user:{alice[5:]}")[0] == 200
    for subject in (f"user:{NAME}", f"user:{alice[5:]}", never):
        status, reply = erase(cluster, subject)
        assert (status, reply["code"]) == (404, "NOT_FOUND"), subject
    cluster.run(1)
    assert NAME.encode() not in bytes_of(cluster)


def test_an_erasure_that_is_sent_again_by_its_pseudonym_has_the_same_answer(cluster):
    make_token(cluster, certificate())
    [alice] = pseudonyms(cluster)
    now_ms = cluster.processes[1].clock.wall_ms()
    headers = {"x-logberg-request-id": uuid_text(uuid7(now_ms, 1))}
    asked = {"subject": f"user:{alice[5:]}"}
    first = cluster.ask("POST", "/v1/erasures", asked, caller=ROOT, headers=headers)
    again = cluster.ask("POST", "/v1/erasures", asked, caller=ROOT, headers=headers)
    assert first[0] == again[0] == 200
    assert first[1]["offset"] == again[1]["offset"]


def request_id(cluster, number=1):
    now_ms = cluster.processes[1].clock.wall_ms()
    return {"x-logberg-request-id": uuid_text(uuid7(now_ms, number))}


def test_an_erasure_that_is_sent_again_by_the_name_has_the_same_answer(cluster):
    make_token(cluster, certificate(), owner=ALICE)
    [alice] = pseudonyms(cluster)
    headers = request_id(cluster)
    status, first = erase(cluster, headers=headers)
    assert (status, first["subject"], first["accessTokens"]) == (200, f"user:{alice[5:]}", 1)
    assert erase(cluster, headers=headers) == (200, first)
    cluster.run_until(lambda: all_destroyed(cluster))
    cluster.lead(2)
    cluster.run_until(lambda: not cluster.leader.awaits_subject_keys)
    assert erase(cluster, headers=headers) == (200, first)
    assert erase(cluster, f"user:{alice[5:]}", headers=headers) == (200, first)
    assert len(records(cluster, SubjectErasedRecord)) == 1
    cluster.run(1)
    assert NAME.encode() not in bytes_of(cluster)


def test_with_another_id_an_erasure_by_the_name_finds_nobody(cluster):
    make_token(cluster, certificate())
    assert erase(cluster, headers=request_id(cluster, 1))[0] == 200
    status, reply = erase(cluster, headers=request_id(cluster, 2))
    assert (status, reply["code"]) == (404, "NOT_FOUND")
    assert erase(cluster)[0] == 404


@pytest.mark.parametrize("who", ["has a pseudonym", "came back", "is in clear", "not covered"])
def test_the_id_of_an_erasure_erases_nobody_else(cluster, who):
    """An answer of 200 would say that this person is erased."""
    set_covered(cluster, ())
    make_token(cluster, name="in-clear", owner=BOB if who == "is in clear" else "User:ci")
    set_covered(cluster, COVERED)
    make_token(cluster, certificate())
    headers = request_id(cluster)
    assert erase(cluster, headers=headers)[0] == 200
    if who == "came back":
        make_token(cluster, certificate(), name="b-key")
    if who == "has a pseudonym":
        make_token(cluster, certificate(BOB), name="b-key")
    names_of = {"came back": NAME, "not covered": "carol"}
    subject = f"user:{names_of.get(who, BOB.removeprefix('User:'))}"
    status, reply = erase(cluster, subject, headers=headers)
    assert (status, reply["code"]) == (409, "REQUEST_ID_REUSED")
    assert len(records(cluster, SubjectErasedRecord)) == 1


def test_the_id_of_another_request_is_no_erasure(cluster):
    make_token(cluster, certificate())
    headers = request_id(cluster)
    make_token(cluster, name="b-key", headers=headers)
    assert erase(cluster, "user:nobody@example.com", headers=headers)[1]["code"] == (
        "REQUEST_ID_REUSED"
    )


def test_addresses_of_a_person_go_with_the_pseudonym():
    cluster = with_people(seal_addresses=True)
    make_token(cluster, certificate())
    [alice] = pseudonyms(cluster)
    text = last_head(cluster).client_address
    assert number_of_text(text) == number_of_pseudonym(alice[5:])
    erase(cluster)
    cluster.run_until(lambda: all_destroyed(cluster))
    sealer = cluster.leader._leader.address_sealer
    assert sealer.sealed(cluster.image, alice, "203.0.113.9") == "", "no key is left for it"


def test_a_name_that_the_log_has_in_clear_is_erased_as_it_is(cluster):
    set_covered(cluster, ())
    set_credential(cluster, NAME)
    make_token(cluster, owner=ALICE)
    set_covered(cluster, COVERED)
    status, reply = erase(cluster)
    assert status == 200
    assert (reply["subject"], reply["credentials"], reply["accessTokens"]) == (f"user:{NAME}", 1, 1)
    assert not pseudonyms(cluster)


# -- where names stay, or nothing is written ------------------------------------------------------


def test_below_the_level_names_stay(cluster):
    cluster = with_people(initial_features=BASE)
    assert make_topic(cluster, certificate()) == 200
    assert last_head(cluster).principal == ALICE


def make_topic(cluster, who):
    entity = [{"entityType": "user", "entityName": "ci"}]
    quota = {"entity": entity, "operations": [{"key": "producer_byte_rate", "value": 1.0}]}
    return cluster.ask("POST", "/v1/quotas", {"entries": [quota]}, caller=who)[0]


def test_before_the_keys_are_here_nothing_is_written_about_a_person():
    cluster = with_people(leader=None)
    cluster.lead(1)
    statuses = set()
    for turn in itertools.count():
        status, reply = make_token(cluster, certificate(), name=f"key-{turn}")
        statuses.add((status, reply.get("code")))
        if status == 200:
            break
        cluster.run(0.02)
    assert statuses >= {(429, "THROTTLED"), (200, None)}
    assert NAME.encode() not in bytes_of(cluster)


def test_what_has_pseudonyms_keeps_them_once_the_setting_is_gone(cluster):
    make_token(cluster, certificate())
    cluster.run(0.5)
    for node in (1, 2, 3):
        cluster.kill(node)
    cluster.config["pseudonyms"] = ()
    for node in (1, 2, 3):
        cluster.start(node)
    cluster.run(0.5)
    cluster.lead(1)
    cluster.run_until(lambda: not cluster.leader.awaits_subject_keys)
    make_token(cluster, certificate(), name="b-key")
    assert [last_head(cluster).principal] == pseudonyms(cluster)
    make_token(cluster, certificate(BOB), name="c-key")
    assert last_head(cluster).principal == BOB
