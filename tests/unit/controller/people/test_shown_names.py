"""Whoever may read the log sees the names behind pseudonyms, as long as a controller opens them."""

import json
from base64 import b64encode

import pytest

from controller.http.past_reads import read_past
from controller.http.watch import batch_in_words
from metadata.errors import LogbergError
from metadata.messages.parts import encode_in_parts
from metadata.messages.wire import JSON
from metadata.pseudonyms import pseudonym_of
from metadata.records import AttemptsRecord
from runtime.http.requests import Caller
from tests.unit.controller.erasure.test_addresses import bytes_of
from tests.unit.controller.erasure.test_erasure import all_destroyed, made
from tests.unit.controller.people.people_bench import (
    ALICE,
    BOB,
    NAME,
    ROOT,
    certificate,
    make_token,
    pseudonyms,
    with_people,
)

PATH = "/v1/pseudonyms"
BOBS_NAME = "bob@example.com"


@pytest.fixture
def cluster():
    """Alice and Bob have pseudonyms."""
    cluster = with_people()
    make_token(cluster, certificate())
    make_token(cluster, certificate(BOB), name="b-key")
    cluster.run(1)
    return cluster


def people(cluster, query=None, **options):
    """Return the name by the pseudonym, in the order of the answer."""
    status, reply = cluster.ask("GET", PATH, query=query or {}, caller=ROOT, **options)
    assert status == 200, reply
    return {each["pseudonym"]: each["name"] for each in reply["people"]}


def bare(cluster, place):
    return pseudonyms(cluster)[place].removeprefix("User:")


def erase(cluster, name=NAME):
    status, reply = cluster.ask("POST", "/v1/erasures", {"subject": f"user:{name}"}, caller=ROOT)
    assert status == 200, reply
    cluster.run_until(lambda: all_destroyed(cluster))


def in_words(cluster, **options):
    """Return the batches of the log in words."""
    query = {"format": "json", "maxBytes": str(1 << 20)}
    status, reply = cluster.ask("GET", "/v1/log", query=query, caller=ROOT, **options)
    assert status == 200, reply
    return reply["batches"]


def causes(cluster):
    """Return (principal, principalName) of each batch that a person caused."""
    found = [(each.get("principal", ""), each.get("principalName")) for each in in_words(cluster)]
    return [(who, name) for who, name in found if who.startswith("User:p-")]


def test_each_controller_shows_who_is_behind_a_pseudonym(cluster):
    both = {bare(cluster, 0): NAME, bare(cluster, 1): BOBS_NAME}
    for node in (1, 2, 3):
        shown = people(cluster, {"consistency": "stale"}, node=node)
        assert shown == both
        assert list(shown) == sorted(both)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"name": NAME}, [0]),
        ({"name": f"User:{NAME}"}, [0]),
        ({"name": "carol@example.com"}, []),
        ({"name": "alice@example.co"}, []),
        ({"pseudonym": "1"}, [1]),
        ({"pseudonym": "User:1"}, [1]),
        ({"pseudonym": "2"}, []),
        ({"pseudonym": "0", "name": NAME}, [0]),
        ({"pseudonym": "1", "name": NAME}, []),
    ],
)
def test_one_person_is_found_by_name_or_by_pseudonym(cluster, query, found):
    given = [bare(cluster, 0), bare(cluster, 1), pseudonym_of(bytes(8))]
    if "pseudonym" in query:
        number = query["pseudonym"][-1]
        query = {**query, "pseudonym": query["pseudonym"].replace(number, given[int(number)])}
    assert list(people(cluster, query)) == [given[place] for place in found]


def test_a_page_says_where_the_next_one_begins(cluster):
    _, first = cluster.ask("GET", PATH, query={"limit": "1"}, caller=ROOT)
    more = {"limit": "1", "continuation": first["continuation"]}
    _, second = cluster.ask("GET", PATH, query=more, caller=ROOT)
    rows = [*first["people"], *second["people"]]
    assert {row["pseudonym"]: row["name"] for row in rows} == people(cluster)


def test_without_keys_no_name_is_shown_and_none_is_found(cluster):
    shown = json.loads(read_past(cluster.image, PATH, {}))["people"]
    assert shown == [{"pseudonym": each, "name": None} for each in people(cluster)]
    with pytest.raises(LogbergError, match="ask a controller"):
        read_past(cluster.image, PATH, {"name": NAME})
    words = [b"".join(encode_in_parts(batch_in_words(each), JSON)) for each in cluster.batches()]
    assert pseudonyms(cluster)[0].encode() in b"".join(words)
    assert b"principalName" not in b"".join(words)
    for key in cluster.keys.values():
        key.subjects.keys = None
    for query in ({}, {"name": NAME}):
        status, reply = cluster.ask("GET", PATH, query=query, caller=ROOT)
        assert (status, reply["code"]) == (429, "THROTTLED")


def test_after_an_erasure_nobody_is_behind_the_pseudonym(cluster):
    gone, stays = bare(cluster, 0), bare(cluster, 1)
    assert people(cluster, {"name": NAME}) == {gone: NAME}
    assert causes(cluster)[0] == (f"User:{gone}", NAME)
    _, first = cluster.ask("GET", PATH, query={"limit": "1"}, caller=ROOT)
    erase(cluster)
    assert people(cluster) == {stays: BOBS_NAME}
    assert people(cluster, {"name": NAME}) == {}
    assert people(cluster, {"pseudonym": gone}) == {}
    assert causes(cluster)[:2] == [(f"User:{gone}", None), (f"User:{stays}", BOBS_NAME)]
    # A page of the state before the erasure still has the pseudonym, and not the name.
    query = {"continuation": first["continuation"]}
    _, rest = cluster.ask("GET", PATH, query=query, caller=ROOT)
    assert NAME not in json.dumps(rest)


def test_a_name_stands_beside_its_principal_and_the_principal_stays(cluster):
    alice, bob = pseudonyms(cluster)[0], pseudonyms(cluster)[1]
    assert causes(cluster) == [(alice, NAME), (bob, BOBS_NAME)]
    query = {"resource": "user:ci", "from": "0"}
    status, reply = cluster.ask("GET", "/v1/watch", query=query, caller=ROOT)
    assert status == 200, reply
    said = [(each["principal"], each["principalName"]) for each in reply["records"]]
    assert said == [(alice, NAME), (bob, BOBS_NAME)]


def test_who_was_refused_is_shown():
    cluster = made(
        pseudonyms=("User:*@example.com",),
        authorization="on",
        super_users=frozenset({"User:root"}),
        attempts_interval_s=1.0,
    )
    assert cluster.ask("DELETE", "/v1/topics/orders", caller=certificate())[0] == 403
    cluster.run(4)
    [tried] = [record for record in cluster.records() if isinstance(record, AttemptsRecord)]
    records = [each for batch in in_words(cluster) for each in batch["records"]]
    [shown] = [each["data"] for each in records if each["type"] == "ATTEMPTS_RECORD"]
    assert (shown["principal"], shown["principalName"]) == (tried.principal, NAME)
    status, reply = cluster.ask("GET", PATH, query={"name": NAME}, caller=certificate())
    assert status == 403, reply
    assert reply["details"]["lacks"] == "READ on CLUSTER audit"
    cluster.run(4)
    assert NAME.encode() not in bytes_of(cluster)


def test_a_caller_hears_the_own_name_and_no_other(cluster):
    status, reply = cluster.ask("GET", "/v1/caller", caller=certificate())
    assert (status, reply["principal"], reply["name"]) == (200, pseudonyms(cluster)[0], NAME)
    assert cluster.ask("GET", "/v1/caller", caller=ROOT)[1]["name"] is None


def test_a_broker_that_asks_for_a_person_is_shown_and_does_not_hear_the_name():
    cluster = made(pseudonyms=("User:*@example.com",), delegations={1: frozenset({"User:*"})})
    make_token(cluster, certificate())
    broker = Caller("Broker:1", "certificate", "10.0.0.1")
    for_alice = {"x-logberg-on-behalf-of": pseudonyms(cluster)[0]}
    status, reply = cluster.ask("GET", "/v1/caller", caller=broker, headers=for_alice)
    assert (status, reply["principal"], reply["name"]) == (200, pseudonyms(cluster)[0], None)
    wanted = {"principal": "User:ci", "sha256": b64encode(bytes(32)).decode()}
    options = {"caller": broker, "headers": {"x-logberg-on-behalf-of": ALICE}}
    status, reply = cluster.ask("POST", "/v1/access-tokens", wanted, **options)
    assert status == 200, reply
    newest = in_words(cluster)[-1]
    assert newest["onBehalfOf"] == pseudonyms(cluster)[0]
    assert newest["onBehalfOfName"] == NAME
    assert "principalName" not in newest


def test_what_was_shown_is_kept_nowhere(cluster):
    people(cluster)
    people(cluster, {"name": NAME})
    causes(cluster)
    cluster.run(1)
    assert NAME.encode() not in bytes_of(cluster)
    assert NAME not in str(cluster.logs.entries)
