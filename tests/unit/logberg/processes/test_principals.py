"""The principal of a caller, from its credentials."""

from hashlib import sha256
from typing import Any

import msgspec
import pytest

from logberg.processes.principals import Principals
from logberg.processes.settings.controller_settings import Token
from metadata.image import MetadataDelta, MetadataImage
from metadata.image.metadata_image import EMPTY
from metadata.records import (
    AccessTokenRecord,
    CertificateRevocationRecord,
    JoinTokenRecord,
    Record,
    RevokedBy,
)
from runtime.http.requests import Caller, Reply
from runtime.sockets.credentials import PeerCertificate, ShownToken

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
    caller = PRINCIPALS.authenticate(PeerCertificate(uri), None, None, "127.0.0.1")
    assert caller == Caller(principal, "certificate", "127.0.0.1")


@pytest.mark.parametrize(
    "uri", ["broker://other/7", "http://cluster/7", "broker://cluster/", "broker:cluster"]
)
def test_a_certificate_of_another_cluster_or_kind_is_refused(uri: str) -> None:
    refused = PRINCIPALS.authenticate(PeerCertificate(uri), None, None, "")
    assert isinstance(refused, Reply)
    assert refused.status == 401


def test_a_token_is_known_by_its_hash() -> None:
    caller = PRINCIPALS.authenticate(None, ShownToken("qk_secret"), None, "::1")
    assert caller == Caller("User:admin", "token", "::1")


def test_an_unknown_token_is_refused_even_beside_a_good_certificate() -> None:
    refused = PRINCIPALS.authenticate(
        PeerCertificate("broker://cluster/1"), ShownToken("qk_wrong"), None, ""
    )
    assert isinstance(refused, Reply)
    body = msgspec.json.decode(refused.body)
    assert body["code"] == "UNAUTHENTICATED"
    assert "--token-file" in body["message"]


@pytest.mark.parametrize(
    ("uri", "carrier"),
    [
        ("broker://cluster/1", "Broker:1"),
        ("user://cluster/alice", "User:alice"),
        ("broker://other/1", ""),
    ],
)
def test_a_certificate_beside_a_token_says_who_carries_the_token(uri: str, carrier: str) -> None:
    shown = PeerCertificate(uri), ShownToken("qk_secret")
    caller = PRINCIPALS.authenticate(*shown, None, "::1")
    assert caller == Caller("User:admin", "token", "::1", carried_by=carrier)


def test_who_shows_nothing_is_anonymous() -> None:
    assert PRINCIPALS.authenticate(None, None, None, "") == Caller()


def test_a_unix_user_is_a_user() -> None:
    caller = PRINCIPALS.authenticate(None, None, 0, "")
    assert caller == Caller("User:root", "unix-socket", "")


TOKEN, JOIN = "lgb_" + "a" * 43, "lgbj_" + "b" * 43
NOON = 1_700_000_000_000


def judging(*records: Record, wall_ms: int = NOON, log_ms: int = 0) -> Principals:
    """Judge by an image with these records, at this time of the node and of the log."""
    delta = MetadataDelta(EMPTY)
    delta.replay_all(records, 0)
    delta.finish_batch(len(records), 1, log_ms)
    image: MetadataImage = delta.apply()
    file_token = Token("User:file", sha256(TOKEN.encode()).hexdigest())
    return Principals("cluster", (file_token,), lambda: image, lambda: wall_ms)


def access(*, expires_ms: int = NOON + 1, revoked_ms: int = -1) -> AccessTokenRecord:
    digest = sha256(TOKEN.encode())
    times = (0, expires_ms, revoked_ms)
    return AccessTokenRecord(
        digest.hexdigest()[:16], "User:log", "", digest.digest(), "User:a", *times, ""
    )


def joining(*, expires_ms: int = NOON + 1, revoked_ms: int = -1) -> JoinTokenRecord:
    digest = sha256(JOIN.encode())
    times = (0, expires_ms, revoked_ms, -1)
    made = (1, 7, ("a",), "User:a")
    return JoinTokenRecord(digest.hexdigest()[:16], digest.digest(), *made, *times, b"", b"")


def said(refused: Caller | Reply) -> str:
    assert isinstance(refused, Reply)
    assert refused.status == 401
    return str(msgspec.json.decode(refused.body)["message"])


def test_the_log_counts_before_the_settings() -> None:
    found = judging().authenticate(None, ShownToken(TOKEN), None, "")
    assert found == Caller("User:file", "token", "")
    found = judging(access()).authenticate(None, ShownToken(TOKEN), None, "")
    assert found == Caller("User:log", "token", "")
    revoked = judging(access(revoked_ms=5)).authenticate(None, ShownToken(TOKEN), None, "")
    assert "was revoked at 1970-01-01T00:00:00+00:00" in said(revoked)


@pytest.mark.parametrize("record", [access, joining])
@pytest.mark.parametrize(
    ("wall_ms", "log_ms", "let_in"),
    [
        (NOON, 0, True),
        (NOON + 1, 0, False),
        # The node's clock is a year behind, and the log is later: the log counts.
        (NOON - 365 * 86_400_000, NOON + 1, False),
        # The node's clock is ahead: it refuses early, and lets nobody in.
        (NOON + 1, NOON - 5, False),
    ],
)
def test_an_expired_token_is_refused_also_where_clocks_are_apart(
    record: Any, wall_ms: int, log_ms: int, let_in: bool
) -> None:
    made = record()
    shown = ShownToken(TOKEN if isinstance(made, AccessTokenRecord) else JOIN)
    found = judging(made, wall_ms=wall_ms, log_ms=log_ms).authenticate(None, shown, None, "")
    assert isinstance(found, Caller) is let_in
    if not let_in:
        assert f"{made.token_id} expired at 2023-11-14T22:13:20+00:00" in said(found)


def test_a_join_token_opens_one_path_and_is_no_principal_of_the_cluster() -> None:
    found = judging(joining()).authenticate(None, ShownToken(JOIN), None, "::1")
    assert isinstance(found, Caller)
    assert (found.only_path, found.method) == ("/v1/join", "join-token")
    assert found.principal.startswith("JoinToken:")
    revoked = judging(joining(revoked_ms=1)).authenticate(None, ShownToken(JOIN), None, "")
    assert "was revoked" in said(revoked)


@pytest.mark.parametrize("text", [TOKEN[:-1], JOIN[:-1], TOKEN + "a", "lgb_", JOIN + "=", "lgb_é"])
def test_a_truncated_token_is_refused_and_said_to_be_one(text: str) -> None:
    found = judging(access(), joining()).authenticate(None, ShownToken(text), None, "")
    assert "it was cut off or mistyped" in said(found)


@pytest.mark.parametrize("text", ["lgb_" + "c" * 43, "lgbj_" + "c" * 43, "x" * 47, ""])
def test_a_forged_token_is_refused(text: str) -> None:
    found = judging(access(), joining()).authenticate(None, ShownToken(text), None, "")
    assert "is not known here" in said(found)


def test_a_token_with_the_same_id_and_another_hash_is_another_one() -> None:
    """The id is only the beginning of the hash."""
    other = msgspec.structs.replace(access(), sha256=bytes(32))
    found = judging(other).authenticate(None, ShownToken(TOKEN), None, "")
    assert found == Caller("User:file", "token", ""), "the log doesn't know it"


def test_a_revoked_certificate_carries_no_token() -> None:
    revoked = int(RevokedBy.SERIAL), "0AFF", -1, "User:a", NOON
    record = CertificateRevocationRecord(*revoked)
    shown = PeerCertificate("broker://cluster/1", "0AFF", "Nov 14 22:13:20 2023 GMT")
    caller = judging(access(), record).authenticate(shown, ShownToken(TOKEN), None, "")
    assert caller == Caller("User:log", "token", "")


ALICE = PeerCertificate("user://cluster/alice", "0AFF", "Nov 14 22:13:20 2023 GMT")


@pytest.mark.parametrize(
    ("kind", "value", "before_ms", "refused"),
    [
        (RevokedBy.SERIAL, "0AFF", -1, "the certificate 0AFF was revoked"),
        (RevokedBy.SERIAL, "0AFE", -1, ""),
        (RevokedBy.PRINCIPAL, "User:alice", NOON + 1, "certificates of User:alice that begin"),
        (RevokedBy.PRINCIPAL, "User:alice", NOON, ""),
        (RevokedBy.PRINCIPAL, "User:bob", NOON + 1, ""),
    ],
)
def test_a_revoked_certificate_is_refused(
    kind: RevokedBy, value: str, before_ms: int, refused: str
) -> None:
    record = CertificateRevocationRecord(int(kind), value, before_ms, "User:a", NOON)
    found = judging(record).authenticate(ALICE, None, None, "::1")
    if refused:
        assert refused in said(found)
    else:
        assert found == Caller("User:alice", "certificate", "::1")


def test_a_certificate_without_a_readable_beginning_counts_as_old() -> None:
    record = CertificateRevocationRecord(2, "User:alice", 0, "User:a", NOON)
    for begins in ("", "yesterday"):
        shown = ALICE._replace(begins=begins)
        assert isinstance(judging(record).authenticate(shown, None, None, ""), Reply)


def test_no_text_of_a_shown_token_has_it() -> None:
    assert TOKEN not in repr(ShownToken(TOKEN)) + str(ShownToken(TOKEN))
