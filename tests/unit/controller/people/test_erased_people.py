"""An erasure ends what ties a pseudonym to the name."""

from sys import getrefcount

import pytest

from metadata.pseudonyms import number_of_pseudonym
from metadata.records import SubjectErasedRecord
from metadata.sealed_texts import number_of_text
from metadata.uuids import uuid7, uuid_text
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
    last_head,
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


def tables_with(name, controller):
    """Return which tables of names in a controller's memory have a name."""
    giving = controller._people._giving
    people = giving.people
    tables = {
        "expected": people._expected.values(),
        "names": people._names.values(),
        "pseudonyms": people._pseudonyms,
        "standings": giving._standings,
    }
    return [table for table, texts in tables.items() if any(name in text for text in texts)]


def test_an_erased_name_is_in_no_table_of_any_controller(cluster):
    make_token(cluster, certificate(), owner=ALICE)
    for controller in cluster.controllers.values():
        # As of a decision that was not written, because its leader was replaced.
        controller._people._giving.people.expect("p-aaaaaaaaaaaaa", NAME)
        assert "expected" in tables_with(NAME, controller)
    assert "standings" in tables_with(NAME, cluster.leader)
    assert erase(cluster)[0] == 200
    cluster.run_until(lambda: all_destroyed(cluster))
    cluster.run(1)
    for node, controller in cluster.controllers.items():
        assert (node, tables_with(NAME, controller)) == (node, [])


@pytest.mark.parametrize(
    "name",
    [
        "somebody.else@example.com",
        "p-alice.example",
        "p-aaaaaaaaaaaa1",
        "p-AAAAAAAAAAAAA",
        "p-aaaaaaaaaaaaaa",
        "p-äaaaaaaaaaaaa",
    ],
)
def test_no_name_is_remembered_because_it_was_asked_whether_it_is_a_pseudonym(name):
    asked = "".join(list(name))
    before = getrefcount(asked)
    assert number_of_pseudonym(asked) is None
    assert getrefcount(asked) == before


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
