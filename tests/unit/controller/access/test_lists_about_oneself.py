"""Everybody may list one's own tokens, and hears nothing of the tokens of others."""

from base64 import b64encode, urlsafe_b64decode
from hashlib import sha256
from typing import Any

import pytest

from metadata.sealing import ClusterKey
from runtime.http.requests import Caller, Request
from tests.unit.controller.access.test_guard import ALICE, ROOT, made

pytestmark = pytest.mark.simulation

BOB = Caller("User:bob", "token", "10.0.0.8")
EACH = 5
"""Tokens of each of the two."""
LISTS = [("/v1/tokens", "owner"), ("/v1/access-tokens", "principal")]


def delegation_token(cluster: Any, owner: Caller, _number: int) -> str:
    status, reply = cluster.ask("POST", "/v1/tokens", {}, caller=owner)
    assert status == 200, reply
    made_id: str = reply["token"]["tokenId"]
    return made_id


def access_token(cluster: Any, owner: Caller, number: int) -> str:
    digest = sha256(f"{owner.principal} {number}".encode()).digest()
    wanted = {"principal": owner.principal, "name": f"t{number}"}
    wanted["sha256"] = b64encode(digest).decode()
    status, reply = cluster.ask("POST", "/v1/access-tokens", wanted, caller=ROOT)
    assert status == 200, reply
    made_id: str = reply["token"]["tokenId"]
    return made_id


def stocked(path: str, *, of_alice: int = EACH, of_bob: int = EACH) -> tuple[Any, set[str], str]:
    """Return a cluster with tokens, the ids of Alice's, and those of Bob's as one text."""
    cluster = made(nodes=1, cluster_key=ClusterKey(bytes(32)))
    make = delegation_token if path == "/v1/tokens" else access_token
    mine = {make(cluster, ALICE, number) for number in range(of_alice)}
    others = [make(cluster, BOB, number) for number in range(of_bob)]
    return cluster, mine, " ".join(others)


def told(token: str | None) -> str:
    """Return what a token of a page says."""
    text = token or ""
    return urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("latin-1")


@pytest.mark.parametrize(("path", "parameter"), LISTS)
def test_pages_of_one_s_own_tokens_are_full_and_name_no_token_of_others(path, parameter):
    cluster, mine, others = stocked(path)
    found, sizes, more = set(), [], {}
    while True:
        query = {parameter: "User:alice", "limit": "2", **more}
        status, reply = cluster.ask("GET", path, query=query, caller=ALICE)
        assert status == 200, reply
        ids = {token["tokenId"] for token in reply["tokens"]}
        sizes.append(len(ids))
        found |= ids
        if reply["continuation"] is None:
            break
        said = told(reply["continuation"])
        assert not any(each in said for each in others.split())
        assert any(each in said for each in ids)
        more = {"continuation": reply["continuation"]}
    assert (found, sizes) == (mine, [2, 2, 1])


@pytest.mark.parametrize(("path", "parameter"), LISTS)
@pytest.mark.parametrize("of_bob", [0, 1, 2 * EACH])
def test_who_has_no_token_is_not_told_how_many_others_have(path, parameter, of_bob):
    cluster, *_ = stocked(path, of_alice=0, of_bob=of_bob)
    query = {parameter: "User:alice", "limit": "1"}
    status, reply = cluster.ask("GET", path, query=query, caller=ALICE)
    assert (status, reply["tokens"], reply["continuation"]) == (200, [], None)


@pytest.mark.parametrize(("path", "parameter"), LISTS)
def test_the_tokens_of_others_are_passed_over_in_steps(path, parameter):
    cluster, *_ = stocked(path, of_alice=0, of_bob=200)
    parts: list[int] = []

    def take(reply: Any) -> None:
        parts.append(sum(1 for part in reply.parts if not part))

    request = Request("GET", path, b"", {parameter: "User:alice"}, {}, ALICE)
    cluster.processes[1].run(lambda: cluster.leader.handle(request, take))
    cluster.run_until(lambda: bool(parts))
    assert parts[0] >= 3, "a step has at most 64 names"
