"""Access tokens: from a request to the log, and what no answer and no file ever holds."""

from base64 import b64encode
from hashlib import sha256
from typing import Any

import msgspec
import pytest

from controller.managers.clients.access_tokens import DAY_MS, LIFETIME_MS
from metadata.credentials import judge_access_token
from metadata.features import BASE
from metadata.image.credentials import KEPT_MS
from metadata.records import AccessTokenRecord
from tests.unit.controller.cluster import Cluster

pytestmark = pytest.mark.simulation
SECRET = "lgb_canary-of-an-access-token-1234567890123456789"
OTHER = "lgb_canary-of-another-token-12345678901234567890"


def hashed(token: str) -> str:
    return b64encode(sha256(token.encode()).digest()).decode()


def id_of(token: str) -> str:
    return sha256(token.encode()).hexdigest()[:16]


@pytest.fixture
def cluster() -> Any:
    return Cluster()


def create(cluster: Any, token: str = SECRET, **more: Any) -> Any:
    body = {"principal": "User:alice", "sha256": hashed(token), **more}
    return cluster.ask("POST", "/v1/access-tokens", body)


def change(cluster: Any, token: str, action: str, **body: Any) -> Any:
    return cluster.ask("POST", f"/v1/access-tokens/{id_of(token)}/{action}", body)


def judged(cluster: Any, token: str) -> Any:
    digest = sha256(token.encode()).digest()
    return judge_access_token(cluster.image, digest, cluster.image.timestamp_ms)


def test_a_token_is_made_known_by_its_hash_and_lives_90_days(cluster: Any) -> None:
    status, reply = create(cluster, name="for the build")
    assert status == 200, reply
    token = reply["token"]
    assert token["tokenId"] == id_of(SECRET)
    assert (token["principal"], token["name"]) == ("User:alice", "for the build")
    assert token["expiresMs"] - token["createdMs"] == LIFETIME_MS
    found = judged(cluster, SECRET)
    assert isinstance(found, AccessTokenRecord)
    assert found.principal == "User:alice"
    assert judged(cluster, OTHER) is None
    cluster.assert_equal()


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        ({"principal": "alice"}, "INVALID_PRINCIPAL_TYPE", "User:NAME or Broker:NUMBER"),
        ({"principal": "Controller:1"}, "INVALID_PRINCIPAL_TYPE", "User:NAME or Broker:NUMBER"),
        ({"principal": "Broker:x"}, "INVALID_PRINCIPAL_TYPE", "User:NAME or Broker:NUMBER"),
        ({"principal": "User:ANONYMOUS"}, "INVALID_PRINCIPAL_TYPE", "can have no token"),
        ({"principal": "User:a\nb"}, "INVALID_REQUEST", "control character"),
        ({"principal": "User:" + "a" * 300}, "INVALID_REQUEST", "255 characters"),
        ({"name": "x" * 101}, "INVALID_REQUEST", "100 characters"),
        ({"lifetimeMs": 0}, "INVALID_REQUEST", "lifetimeMs"),
        ({"lifetimeMs": 2**62}, "INVALID_REQUEST", "lifetimeMs"),
        ({"sha256": "AAAA"}, "INVALID_REQUEST", "sha256"),
    ],
)
def test_a_bad_request_makes_no_token(cluster: Any, more: Any, code: str, said: str) -> None:
    status, reply = create(cluster, **more)
    assert (status, reply["code"]) == (400, code), reply
    assert said in reply["message"]
    assert not len(cluster.image.credentials.access_tokens)


def test_a_hash_can_not_be_given_to_somebody_else(cluster: Any) -> None:
    create(cluster)
    status, reply = create(cluster, principal="User:mallory")
    assert (status, reply["code"]) == (400, "DUPLICATE_RESOURCE")
    assert judged(cluster, SECRET).principal == "User:alice"


def test_a_repeated_request_makes_one_token(cluster: Any) -> None:
    again = [create(cluster) for _ in range(2)]
    assert [status for status, _ in again] == [200, 400]


def test_a_rotation_ends_the_old_token_after_the_overlap(cluster: Any) -> None:
    create(cluster, lifetimeMs=10 * DAY_MS)
    status, reply = change(cluster, SECRET, "rotate", sha256=hashed(OTHER), overlapMs=2_000)
    assert status == 200, reply
    assert reply["token"]["replaces"] == id_of(SECRET)
    assert reply["token"]["expiresMs"] - reply["token"]["createdMs"] == 10 * DAY_MS
    assert isinstance(judged(cluster, SECRET), AccessTokenRecord)
    cluster.run(3)
    create(cluster, token="x")
    assert "expired" in judged(cluster, SECRET)
    assert judged(cluster, OTHER).principal == "User:alice"
    cluster.assert_equal()


def test_a_revoked_token_is_refused_and_can_not_be_rotated(cluster: Any) -> None:
    create(cluster)
    status, reply = change(cluster, SECRET, "revoke")
    assert status == 200
    assert reply["token"]["revokedMs"] > 0
    assert "was revoked" in judged(cluster, SECRET)
    offset = reply["offset"]
    status, reply = change(cluster, SECRET, "revoke")
    assert status == 200
    assert reply["token"]["revokedMs"] > 0, "again, it is the same"
    status, reply = change(cluster, SECRET, "rotate", sha256=hashed(OTHER))
    assert (status, reply["code"]) == (400, "INVALID_REQUEST")
    assert "make a new one" in reply["message"]
    assert offset


def test_an_unknown_token_can_not_be_changed(cluster: Any) -> None:
    for action, body in (("revoke", {}), ("rotate", {"sha256": hashed(OTHER)})):
        status, reply = change(cluster, SECRET, action, **body)
        assert (status, reply["code"]) == (404, "RESOURCE_NOT_FOUND")


def test_a_dry_run_writes_nothing(cluster: Any) -> None:
    status, reply = create(cluster, dryRun=True)
    assert status == 200
    assert reply["records"][0]["type"] == "ACCESS_TOKEN_RECORD"
    assert not len(cluster.image.credentials.access_tokens)


def test_tokens_are_listed_without_their_hashes(cluster: Any) -> None:
    create(cluster)
    create(cluster, OTHER, principal="User:bob")
    _, reply = cluster.ask("GET", "/v1/access-tokens", query={"principal": "User:bob"})
    assert [token["tokenId"] for token in reply["tokens"]] == [id_of(OTHER)]
    _, reply = cluster.ask("GET", "/v1/access-tokens")
    assert len(reply["tokens"]) == 2
    assert hashed(OTHER) not in str(reply)


def test_some_time_after_its_end_a_token_is_forgotten(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert KEPT_MS == 7 * DAY_MS
    monkeypatch.setattr("metadata.image.credentials.KEPT_MS", 5_000)
    create(cluster, lifetimeMs=1_000)
    create(cluster, OTHER)
    cluster.run(4)
    assert id_of(SECRET) in cluster.image.credentials.access_tokens
    cluster.run(6)
    assert id_of(SECRET) not in cluster.image.credentials.access_tokens
    assert id_of(OTHER) in cluster.image.credentials.access_tokens
    cluster.assert_equal()


def test_below_the_level_no_token_is_made() -> None:
    cluster = Cluster(initial_features={**BASE, "logberg.version": 5})
    status, reply = create(cluster)
    assert (status, reply["code"]) == (400, "UNSUPPORTED_VERSION")
    assert "logberg features upgrade logberg.version=6" in reply["message"]


def test_the_token_is_in_no_file_no_answer_and_no_line(cluster: Any) -> None:
    create(cluster)
    change(cluster, SECRET, "rotate", sha256=hashed(OTHER))
    cluster.controllers[1].write_checkpoint()
    cluster.run(2)
    texts = [
        bytes(inode.content)
        for platter in cluster.platters.values()
        for inode in platter.names.values()
    ]
    texts.append(repr(cluster.logs.entries).encode())
    texts += [
        msgspec.json.encode(cluster.ask("GET", path, query={})[1])
        for path in ("/v1/access-tokens", "/v1/log", "/v1/status")
    ]
    assert any(sha256(SECRET.encode()).digest() in text for text in texts), "the hash is there"
    for token in (SECRET, OTHER):
        assert all(token.encode() not in text for text in texts)
