"""Addresses of callers are sealed in the log, and an erasure makes them unreadable."""

from base64 import b64decode, b64encode
from collections import Counter
from hashlib import sha256

import pytest

from controller.config import AttemptRule
from controller.managers.address_sealing import AddressSealer
from ledger.batch import Provenance
from metadata.codec import encode_record
from metadata.features import BASE
from metadata.records import (
    AttemptsRecord,
    RequestOutcomeRecord,
    SubjectErasedRecord,
    UserScramCredentialRecord,
)
from metadata.sealed_addresses import (
    AddressOpener,
    is_sealed,
    network_of_address,
    opened_address,
    shown_address,
    subject_of_address,
)
from metadata.sealed_blocks import SealingError, number_of_block
from metadata.sealed_texts import number_of_text
from runtime.http.requests import Caller
from tests.unit.controller.erasure.test_erasure import all_destroyed, erase, from_disk, made

ALICE, BOB = "203.0.113.77", "198.51.100.23"
ALICE_IN_CLEAR = "10.0.0.7"
"""From where the test bench asks, as User:alice."""
HOUR_MS = 3_600_000


@pytest.fixture
def cluster():
    return made(seal_addresses=True)


def caller(name, address, principal=None):
    return Caller(principal or f"User:{name}", "token", address)


def erase_alice(cluster, **options):
    return cluster.send(
        "POST", "/v1/erasures", {"subject": "user:alice"}, caller=caller("root", "10.9.9.9")
    )


def heads(cluster, who="User:alice"):
    """Return the addresses in the heads of batches that somebody asked for."""
    said = [batch.header.provenance for batch in cluster.batches()]
    return [one.client_address for one in said if (one.on_behalf_of or one.principal) == who]


def opened(key, addresses, who="User:alice"):
    found = []
    for address in addresses:
        try:
            found.append(opened_address(key, who, address))
        except SealingError:
            found.append(None)
    return found


def write_as(cluster, who="alice", address=ALICE, name="a-key"):
    """Change something in the name of a user; return the answer."""
    digest = b64encode(sha256(name.encode()).digest()).decode()
    wanted = {"principal": "User:ci", "name": name, "sha256": digest}
    return cluster.ask("POST", "/v1/access-tokens", wanted, caller=caller(who, address))


def refused(cluster, caller_of, node=None, name="orders"):
    return cluster.ask("DELETE", f"/v1/topics/{name}", caller=caller_of, node=node)


def attempts(cluster):
    return [record for record in cluster.records() if isinstance(record, AttemptsRecord)]


def bytes_of(cluster):
    """Return every byte that the nodes have on their disks."""
    return b"".join(
        bytes(inode.content)
        for platter in cluster.platters.values()
        for inode in platter.names.values()
    )


def test_heads_of_batches_have_the_address_of_a_user_sealed(cluster):
    write_as(cluster)
    write_as(cluster, "bob", BOB, "b-key")
    [text] = heads(cluster)
    assert is_sealed(text)
    assert number_of_text(text) == cluster.keys[1].number_of("user:alice")
    assert opened(cluster.keys[1], [text]) == [ALICE]
    assert opened(cluster.keys[1], [text], "User:bob") == [None], "it is bound to its user"
    assert opened(cluster.keys[1], heads(cluster, "User:bob"), "User:bob") == [BOB]
    cluster.run(1)
    assert ALICE.encode() not in bytes_of(cluster)
    cluster.assert_equal()


def test_without_the_setting_addresses_stay_in_clear():
    cluster = made()
    write_as(cluster)
    assert heads(cluster) == [ALICE]


def test_the_addresses_of_the_cluster_s_own_nodes_stay_in_clear(cluster):
    sealer = AddressSealer(cluster.keys[1], lambda: 0)
    said = Provenance("Broker:3", "certificate", client_address="10.0.0.3")
    assert sealer.of_head(cluster.image, said) is said
    assert set(heads(cluster, "Controller:1")) == {""}


def test_an_erasure_makes_the_addresses_of_a_user_unreadable_everywhere(cluster):
    write_as(cluster)
    write_as(cluster, "bob", BOB, "b-key")
    cluster.run(1)
    before, files = heads(cluster), cluster.ledger_files(1)
    erase_alice(cluster)
    cluster.run_until(lambda: all_destroyed(cluster))
    for node in (1, 2, 3):
        for key in (cluster.keys[node], from_disk(cluster, node)):
            assert opened(key, before) == [None] * len(before)
            assert opened(key, heads(cluster, "User:bob"), "User:bob") == [BOB]
        assert cluster.holds(node, files), "no byte of the log was changed"
    cluster.assert_equal()


def test_a_user_who_comes_back_has_another_key(cluster):
    write_as(cluster)
    first = heads(cluster)
    erased = erase_alice(cluster)
    write_as(cluster, name="second")
    cluster.run_until(lambda: bool(erased))
    cluster.run(1)
    assert opened(cluster.keys[1], first) == [None]
    assert opened(cluster.keys[1], heads(cluster)[-1:]) == [ALICE]


def test_who_asks_for_somebody_has_that_person_s_key():
    cluster = made(seal_addresses=True)
    image, sealer = cluster.image, AddressSealer(cluster.keys[1], lambda: 0)
    said = Provenance("Broker:1", "certificate", "User:alice", ALICE)
    sealed = sealer.of_head(image, said)
    assert number_of_text(sealed.client_address) == cluster.keys[1].number_of("user:alice")
    assert sealer.of_head(image, Provenance("Broker:1", "certificate", "", ALICE)) == (
        Provenance("Broker:1", "certificate", "", ALICE)
    )


def test_a_text_is_made_once_a_day_and_again_after_an_erasure(cluster, monkeypatch):
    now = [0]
    sealer, image = AddressSealer(cluster.keys[1], lambda: now[0]), cluster.image
    made_texts = Counter()
    make = sealer._make
    monkeypatch.setattr(
        sealer, "_make", lambda *args: (made_texts.update([args[1]]), make(*args))[1]
    )
    first = sealer.sealed(image, "User:alice", ALICE)
    assert sealer.sealed(image, "User:alice", ALICE) == first
    assert made_texts["User:alice"] == 1
    now[0] = 23 * HOUR_MS
    assert sealer.sealed(image, "User:alice", ALICE) == first
    now[0] = 24 * HOUR_MS
    second = sealer.sealed(image, "User:alice", ALICE)
    assert second != first, "what is equal shows nothing beyond a day"
    erase_alice(cluster)
    cluster.run(1)
    third = sealer.sealed(cluster.image, "User:alice", ALICE)
    assert number_of_text(third) == cluster.keys[1].number_of("user:alice", 1)
    assert opened(cluster.keys[1], [first, second, third]) == [None, None, ALICE]


def test_texts_are_kept_in_bounded_number(cluster, monkeypatch):
    monkeypatch.setattr("controller.managers.address_sealing._TEXTS_MAX", 3)
    sealer = AddressSealer(cluster.keys[1], lambda: 0)
    for number in range(5):
        sealer.sealed(cluster.image, "User:alice", f"10.0.0.{number}")
    assert len(sealer._texts) == 3


def test_a_change_waits_while_the_keys_are_awaited(cluster):
    keys = cluster.keys[1].subjects.keys
    cluster.keys[1].subjects.keys = None
    status, reply = write_as(cluster)
    assert (status, reply["code"]) == (429, "THROTTLED")
    assert heads(cluster) == []
    cluster.keys[1].subjects.keys = keys
    status, _ = write_as(cluster)
    assert status == 200
    assert opened(cluster.keys[1], heads(cluster)) == [ALICE]


def test_no_address_is_in_clear_in_the_first_moments_of_a_cluster():
    """The keys of subjects are named some tenths of a second after the first leader begins."""
    cluster = made(leader=None, seal_addresses=True)
    cluster.processes[1].run(lambda: cluster.shared.lead(1))
    answers = []
    for number in range(60):
        answers.append(write_as(cluster, name=f"key {number}")[0])
        cluster.run(0.005)
    assert {200, 429} <= set(answers) <= {200, 409, 421, 429, 503}
    texts = heads(cluster)
    assert len(texts) == answers.count(200)
    assert all(map(is_sealed, texts))


def test_no_secret_is_sealed_under_the_cluster_key_alone_in_the_first_moments():
    cluster = made(leader=None)
    cluster.processes[1].run(lambda: cluster.shared.lead(1))
    upsertion = {
        "mechanism": "SCRAM-SHA-256",
        "iterations": 4096,
        "salt": b64encode(b"some salt").decode(),
        "saltedPassword": b64encode(bytes(32)).decode(),
    }
    for number in range(60):
        body = {"upsertions": [{"name": f"user-{number}", **upsertion}]}
        cluster.ask("POST", "/v1/users/scram", body)
        cluster.run(0.005)
    records = [r for r in cluster.records() if isinstance(r, UserScramCredentialRecord)]
    assert records
    assert all(number_of_block(each.stored_key) for each in records)


def test_below_the_level_addresses_stay_in_clear():
    cluster = made(initial_features=BASE, seal_addresses=True)
    cluster.online(1)
    cluster.create_topic("orders", factor=1)
    assert set(heads(cluster)) == {ALICE_IN_CLEAR}


# -- attempts -----------------------------------------------------------------------------------


@pytest.fixture
def guarded():
    return made(
        seal_addresses=True,
        authorization="on",
        super_users=frozenset({"User:root"}),
        attempts_interval_s=1.0,
    )


def root(cluster, method, path, body=None, **options):
    return cluster.ask(method, path, body, caller=caller("root", "10.9.9.9"), **options)


def erase_address(cluster, address, **more):
    status, reply = root(cluster, "POST", "/v1/erasures", {"subject": f"from:{address}", **more})
    assert status == 200, reply
    return reply


def test_attempts_have_their_addresses_sealed(guarded):
    assert refused(guarded, caller("alice", ALICE))[0] == 403
    assert refused(guarded, Caller(address=BOB))[0] == 403
    guarded.run(4)
    by_who = {record.principal: record for record in attempts(guarded)}
    assert is_sealed(by_who["User:alice"].address)
    assert is_sealed(by_who[""].address)
    key = guarded.keys[1]
    assert opened(key, [by_who["User:alice"].address]) == [ALICE]
    assert opened(key, [by_who[""].address], "") == [BOB]
    assert number_of_text(by_who["User:alice"].address) == key.number_of("user:alice")
    number = number_of_text(by_who[""].address)
    assert f"from:sealed-{number.hex()}" in by_who[""].subjects(None)
    assert not [word for word in by_who["User:alice"].subjects(None) if word[:5] == "from:"]
    disk = bytes_of(guarded)
    assert ALICE.encode() not in disk
    assert BOB.encode() not in disk


def test_attempts_of_nobody_are_erased_by_their_address(guarded):
    for address in (ALICE, BOB):
        refused(guarded, Caller(address=address))
    guarded.run(4)
    texts = [record.address for record in attempts(guarded)]
    assert sorted(opened(guarded.keys[1], texts, "")) == [BOB, ALICE]
    reply = erase_address(guarded, ALICE)
    assert reply["subject"] == f"from:{ALICE}"
    guarded.run_until(lambda: all_destroyed(guarded))
    for node in (1, 2, 3):
        for key in (guarded.keys[node], from_disk(guarded, node)):
            assert sorted(opened(key, texts, ""), key=str) == [BOB, None]
    [erased] = [each for each in guarded.records() if isinstance(each, SubjectErasedRecord)]
    gone = next(text for text in texts if opened(guarded.keys[1], [text], "") == [None])
    assert erased.subject == f"from:sealed-{number_of_text(gone).hex()}"
    guarded.assert_equal()


def test_nothing_that_the_log_keeps_of_an_erasure_names_the_address(guarded):
    refused(guarded, Caller(address=ALICE))
    guarded.run(4)
    erase_address(guarded, ALICE)
    guarded.run(2)
    assert ALICE.encode() not in bytes_of(guarded)
    outcomes = [each for each in guarded.records() if isinstance(each, RequestOutcomeRecord)]
    assert outcomes
    assert all(b"203.0" not in encode_record(each) for each in outcomes)


def test_no_hash_of_the_request_says_which_address_it_erased():
    rule = AttemptRule(detail="request-response")
    cluster = made(seal_addresses=True, attempt_rules=(rule,), attempts_interval_s=1.0)
    assert erase_address(cluster, ALICE)
    erasure = {"method": "POST", "path": "/v1/erasures", "body": {"subject": f"from:{BOB}"}}
    status, reply = root(cluster, "POST", "/v1/changes", {"changes": [erasure]})
    assert (status, reply["outcomes"][0]["status"]) == (200, 200)
    part = {"digest": "0" * 64, "number": 0, "records": b64encode(b"a part").decode()}
    assert root(cluster, "POST", "/v1/import/parts", part)[0] == 200
    assert write_as(cluster)[0] == 200
    cluster.run(4)
    by_name = {record.operation: record for record in attempts(cluster)}
    assert by_name["erase_subject"].request == "POST /v1/erasures"
    hashes = {name: record.body_sha256 for name, record in by_name.items()}
    assert hashes.pop("create_access_token"), "other bodies have one"
    assert hashes == {"erase_subject": "", "make_changes": "", "keep_import_part": ""}


def test_nobody_can_try_addresses_against_an_erased_number(guarded):
    """Who has the cluster key and all trees that are left makes the number of no address again."""
    refused(guarded, Caller(address=ALICE))
    guarded.run(4)
    [text] = [record.address for record in attempts(guarded)]
    key = guarded.keys[1]
    assert number_of_text(text) == key.number_of_address(ALICE, 0)
    erase_address(guarded, ALICE)
    guarded.run_until(lambda: all_destroyed(guarded))
    for held in (key, from_disk(guarded, 2)):
        with pytest.raises(SealingError):
            held.number_of_address(ALICE, 0)
        assert held.number_of_address(ALICE, 1) != number_of_text(text)


def test_an_address_is_erased_under_its_older_numbers_too(guarded):
    """Each erasure of an address gives all others another number from then on."""
    refused(guarded, Caller(address=ALICE))
    guarded.run(4)
    erase_address(guarded, BOB)
    guarded.run(6)
    refused(guarded, Caller(address=ALICE))
    guarded.run(4)
    first, second = [record.address for record in attempts(guarded)]
    assert number_of_text(first) != number_of_text(second)
    assert opened(guarded.keys[1], [first, second], "") == [ALICE, ALICE]
    erase_address(guarded, ALICE, earlier=[first])
    guarded.run_until(lambda: all_destroyed(guarded))
    assert opened(guarded.keys[1], [first, second], "") == [None, None]
    assert opened(from_disk(guarded, 3), [first, second], "") == [None, None]


def test_only_texts_of_the_same_address_may_be_given(guarded):
    refused(guarded, Caller(address=BOB))
    guarded.run(4)
    [text] = [record.address for record in attempts(guarded)]
    for wrong in (text, "10.0.0.1", "logberg-sealed:xx", "logberg-sealed:TEdCUwE="):
        body = {"subject": f"from:{ALICE}", "earlier": [wrong]}
        status, reply = root(guarded, "POST", "/v1/erasures", body)
        assert (status, reply["code"]) == (400, "INVALID_REQUEST"), wrong
    body = {"subject": "user:alice", "earlier": [text]}
    assert root(guarded, "POST", "/v1/erasures", body)[0] == 400
    assert opened(guarded.keys[1], [text], "") == [BOB]


def test_a_network_of_ipv6_is_one_subject(guarded):
    refused(guarded, Caller(address="2001:db8:1:2:aaaa::1"))
    guarded.run(4)
    [text] = [record.address for record in attempts(guarded)]
    assert opened(guarded.keys[1], [text], "") == ["2001:db8:1:2::/64"]
    erase_address(guarded, "2001:db8:1:2:bbbb::7")
    guarded.run(2)
    assert opened(guarded.keys[1], [text], "") == [None]


def test_a_report_waits_while_the_keys_are_awaited(guarded):
    refused(guarded, Caller(address=ALICE))
    keys, keeping = guarded.keys[1].subjects.keys, guarded.leader._subject_keys
    keeping._stopped, guarded.keys[1].subjects.keys = True, None
    guarded.run(4)
    assert attempts(guarded) == []
    keeping._stopped, guarded.keys[1].subjects.keys = False, keys
    guarded.run(4)
    assert sum(record.count for record in attempts(guarded)) == 1


# -- whose address ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("who", "address", "subject"),
    [
        ("User:alice", ALICE, "user:alice"),
        ("User:ANONYMOUS", ALICE, f"from:{ALICE}"),
        ("", ALICE, f"from:{ALICE}"),
        ("*", ALICE, f"from:{ALICE}"),
        ("", "2001:db8::7", "from:2001:db8::/64"),
        ("", "::ffff:10.0.0.1", "from:10.0.0.1"),
        ("Broker:1", ALICE, None),
        ("Controller:1", ALICE, None),
        ("User:alice", "", None),
        ("", "*", None),
        ("User:alice", "unix socket", None),
    ],
)
def test_an_address_is_about_somebody(who, address, subject):
    assert subject_of_address(who, address) == subject


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "::1"),
        ("fe80::1%eth0", "fe80::/64"),
        ("2001:db8::/64", "2001:db8::/64"),
        ("2001:db8::/48", None),
        ("10.0.0.0/8", None),
        ("10.0.0.07", None),
        ("a host", None),
    ],
)
def test_a_network_stands_for_an_address(address, network):
    assert network_of_address(address) == network


@pytest.mark.parametrize("subject", ["from:", "from:*", "from:10.0.0.0/8", "from:a host", "x:1"])
def test_what_is_no_address_is_refused(cluster, subject):
    status, reply = erase(cluster, subject)
    assert (status, reply["code"]) == (400, "INVALID_REQUEST")


def test_an_opener_keeps_nothing_beyond_an_erasure(cluster):
    write_as(cluster)
    [text] = heads(cluster)
    opener = AddressOpener(cluster.keys[1])
    assert opener.opened("User:alice", text) == ALICE
    assert opener.opened("User:bob", text) == text
    assert opener.opened("User:alice", BOB) == BOB
    assert AddressOpener(None).opened("User:alice", text) == text
    erase_alice(cluster)
    cluster.run(1)
    assert opener.opened("User:alice", text) == text
    assert opener.opened("User:alice", "") == ""
    assert opener._opened == {}


def test_people_read_a_sealed_address_by_its_number(cluster):
    write_as(cluster)
    [text] = heads(cluster)
    number = cluster.keys[1].number_of("user:alice").hex()
    assert shown_address(text) == f"a sealed address of {number}"
    assert shown_address("logberg-sealed:%%") == "a sealed address"
    assert shown_address(ALICE) == ALICE


# -- readers ------------------------------------------------------------------------------------


def log_in_words(cluster, node=1):
    status, reply = cluster.ask(
        "GET", "/v1/log", query={"format": "json"}, node=node, caller=caller("root", "10.9.9.9")
    )
    assert status == 200, reply
    return reply["batches"]


def addresses_in_words(batches, who):
    return [each["clientAddress"] for each in batches if each.get("principal") == who]


def test_the_log_in_words_has_addresses_in_clear_until_they_are_erased(cluster):
    write_as(cluster)
    write_as(cluster, "bob", BOB, "b-key")
    cluster.run(1)
    for node in (1, 2, 3):
        shown = log_in_words(cluster, node)
        assert addresses_in_words(shown, "User:alice") == [ALICE]
        assert addresses_in_words(shown, "User:bob") == [BOB]
    erase_alice(cluster)
    cluster.run(1)
    for node in (1, 2, 3):
        shown = log_in_words(cluster, node)
        assert all(map(is_sealed, addresses_in_words(shown, "User:alice")))
        assert addresses_in_words(shown, "User:bob") == [BOB]


def test_attempts_in_words_have_addresses_in_clear(guarded):
    refused(guarded, Caller(address=BOB))
    guarded.run(4)
    [found] = [
        record["data"]
        for batch in log_in_words(guarded)
        for record in batch["records"]
        if record["type"] == "ATTEMPTS_RECORD"
    ]
    assert found["address"] == BOB


def test_a_watch_shows_who_changed_a_thing_from_where(cluster):
    cluster.online(1)
    cluster.create_topic("orders", factor=1)
    status, reply = cluster.ask("GET", "/v1/watch", query={"resource": "topic:orders", "from": "0"})
    assert status == 200
    assert {each["clientAddress"] for each in reply["records"]} == {ALICE_IN_CLEAR}


def test_the_form_for_programs_is_the_log_as_it_is(cluster):
    write_as(cluster)
    status, reply = cluster.ask("GET", "/v1/log", node=1)
    assert status == 200
    assert ALICE.encode() not in b"".join(b64decode(each) for each in reply["batches"])
