"""The principal of a caller, from its credentials."""

from hashlib import sha256

import msgspec
import pytest

from logberg.processes.controller_settings import Token
from logberg.processes.principals import Principals
from runtime.http.requests import Caller, Reply

PRINCIPALS = Principals("cluster", (Token("User:admin", sha256(b"qk_secret").hexdigest()),))


@pytest.mark.parametrize(
    ("uri", "principal"),
    [
        ("quorum://cluster/2", "Controller:2"),
        ("broker://cluster/7", "Broker:7"),
        ("user://cluster/alice", "User:alice"),
    ],
)
def test_a_certificate_of_this_cluster_names_its_owner(uri: str, principal: str) -> None:
    caller = PRINCIPALS.authenticate(uri, None, None, "127.0.0.1")
    assert caller == Caller(principal, "certificate", "127.0.0.1")


@pytest.mark.parametrize(
    "uri", ["broker://other/7", "http://cluster/7", "broker://cluster/", "broker:cluster"]
)
def test_a_certificate_of_another_cluster_or_kind_is_refused(uri: str) -> None:
    refused = PRINCIPALS.authenticate(uri, None, None, "")
    assert isinstance(refused, Reply)
    assert refused.status == 401


def test_a_token_is_known_by_its_hash() -> None:
    caller = PRINCIPALS.authenticate(None, "qk_secret", None, "::1")
    assert caller == Caller("User:admin", "token", "::1")


def test_an_unknown_token_is_refused_even_beside_a_good_certificate() -> None:
    refused = PRINCIPALS.authenticate("broker://cluster/1", "qk_wrong", None, "")
    assert isinstance(refused, Reply)
    body = msgspec.json.decode(refused.body)
    assert body["code"] == "UNAUTHENTICATED"
    assert "--token-file" in body["message"]


def test_who_shows_nothing_is_anonymous() -> None:
    assert PRINCIPALS.authenticate(None, None, None, "") == Caller()


def test_a_unix_user_is_a_user() -> None:
    caller = PRINCIPALS.authenticate(None, None, 0, "")
    assert caller == Caller("User:root", "unix-socket", "")
