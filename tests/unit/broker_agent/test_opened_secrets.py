"""What an agent opens: the secrets that a controller sealed, and never in a text."""

import hashlib
import hmac
import io
from base64 import b64encode
from typing import Any

import pytest
from rich.console import Console

from broker_agent.opened_secrets import OpenedCredential, Secrets
from logberg.client.salting import salt_for
from metadata.messages.declared import DEFAULT_ITERATIONS
from metadata.records import (
    ConfigRecord,
    ConfigResourceType,
    FeatureLevelRecord,
    ScramMechanism,
    UserScramCredentialRecord,
)
from metadata.sealed_blocks import SealingError
from metadata.sealing import ClusterKey
from tests.unit.controller.cluster import Cluster

KEY = ClusterKey(b"\x07" * 32)
OTHER = ClusterKey(b"\x08" * 32)
SALT = b"some salt"
SALTED = hashlib.pbkdf2_hmac("sha512", b"a canary password", SALT, 4096)
CLIENT_KEY = hmac.digest(SALTED, b"Client Key", "sha512")
BROKER, TOPIC = ConfigResourceType.BROKER, ConfigResourceType.TOPIC
KEYSTORE = "listener.name.inside.ssl.keystore.password"
SHA_512 = ScramMechanism.SCRAM_SHA_512


class SealedCluster(Cluster):
    """A controller that has sealed a credential and a password, and made a token."""

    token: dict[str, Any]
    """The answer to its creation."""


@pytest.fixture(scope="module")
def cluster():
    cluster = SealedCluster(nodes=1, cluster_key=KEY)
    cluster.decide(FeatureLevelRecord("logberg.version", 2))
    upsertion = {
        "name": "al",
        "mechanism": "SCRAM-SHA-512",
        "iterations": 4096,
        "salt": b64encode(SALT).decode(),
        "saltedPassword": b64encode(SALTED).decode(),
    }
    change = {"name": KEYSTORE, "operation": "set", "value": "a canary password"}
    for method, path, body in (
        ("POST", "/v1/users/scram", {"upsertions": [upsertion]}),
        ("PATCH", "/v1/configs/broker/1", {"configs": [change]}),
    ):
        status, reply = cluster.ask(method, path, body)
        assert status == 200, reply
    status, cluster.token = cluster.ask("POST", "/v1/tokens", {"renewers": []})
    assert status == 200
    cluster.decide(
        UserScramCredentialRecord("old", SHA_512, SALT, b"stored", b"server", 4096),
        ConfigRecord(BROKER, "", KEYSTORE, "in clear"),
    )
    return cluster


def secrets_of(cluster, key=KEY) -> Secrets:
    return Secrets(lambda: cluster.image, key)


def test_a_login_is_verified_with_the_opened_credential(cluster):
    """RFC 5802: the client proves that it has the client key; the stored key is its hash."""
    credential = secrets_of(cluster).scram("al", SHA_512)
    assert credential is not None
    message = b"n=al,r=...,s=...,i=4096,c=biws"
    signature = hmac.digest(credential.stored_key, message, "sha512")
    proof = bytes(a ^ b for a, b in zip(CLIENT_KEY, signature, strict=True))
    shown = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
    assert hashlib.sha512(shown).digest() == credential.stored_key
    assert credential.server_key == hmac.digest(SALTED, b"Server Key", "sha512")
    assert (credential.salt, credential.iterations) == (SALT, 4096)


def test_a_login_of_nobody_is_told_what_all_nodes_tell_and_looks_like_that_of_a_user(cluster):
    """Whoever asks two nodes, or one before and after a restart, finds no user."""
    nodes = [secrets_of(cluster), secrets_of(cluster, ClusterKey(b"\x07" * 32))]
    for node in nodes:
        assert node.salting("al", SHA_512) == (SALT, 4096)
    [told] = {node.salting("nobody", SHA_512) for node in nodes}
    assert len(told.salt) == len(salt_for("an id", "nobody"))
    assert told.iterations == DEFAULT_ITERATIONS
    others = [("another", SHA_512), ("nobody", ScramMechanism.SCRAM_SHA_256)]
    assert told not in [nodes[0].salting(*each) for each in others]


@pytest.mark.parametrize("user", ["al", "old", "nobody"])
@pytest.mark.parametrize("key", [None, OTHER], ids=["no key", "wrong key"])
def test_a_node_without_the_right_key_takes_no_login_whoever_the_user_is(cluster, key, user):
    with pytest.raises(SealingError):
        secrets_of(cluster, key).salting(user, SHA_512)


def test_without_any_key_the_salt_of_nobody_is_made_with_what_the_log_has():
    def told(stored_key):
        record = UserScramCredentialRecord("old", SHA_512, SALT, stored_key, b"server", 4096)
        cluster = Cluster(nodes=1)
        cluster.decide(*([] if stored_key is None else [record]))
        return secrets_of(cluster, None).salting("nobody", SHA_512)

    assert told(b"stored") == told(b"stored")
    assert told(b"stored").salt != told(b"another").salt
    assert told(None).iterations == DEFAULT_ITERATIONS


def test_a_token_has_the_hmac_that_its_maker_got(cluster):
    made = cluster.token["token"]
    token = secrets_of(cluster).token(made["tokenId"])
    assert token is not None
    assert b64encode(token.hmac).decode() == cluster.token["hmac"]
    assert (token.owner, token.expiry_ms) == (made["owner"], made["expiryTimestampMs"])


def test_a_password_of_a_config_is_opened(cluster):
    secrets = secrets_of(cluster)
    assert secrets.config(BROKER, "1", KEYSTORE) == "a canary password"
    assert secrets.config(BROKER, "", KEYSTORE) == "in clear"


def test_what_is_not_there_is_none(cluster):
    secrets = secrets_of(cluster)
    assert secrets.scram("al", ScramMechanism.SCRAM_SHA_256) is None
    assert secrets.scram("nobody", SHA_512) is None
    assert secrets.token("no such token") is None
    assert secrets.config(TOPIC, "orders", "retention.ms") is None


@pytest.mark.parametrize(("key", "why"), [(None, "no cluster key"), (OTHER, OTHER.id.hex())])
def test_without_the_right_key_only_what_is_in_clear_can_be_read(cluster, key, why):
    secrets = secrets_of(cluster, key)
    assert secrets.scram("old", SHA_512) == OpenedCredential(SALT, 4096, b"stored", b"server")
    assert secrets.config(BROKER, "", KEYSTORE) == "in clear"
    with pytest.raises(SealingError, match=why):
        secrets.scram("al", SHA_512)
    with pytest.raises(SealingError, match=why):
        secrets.config(BROKER, "1", KEYSTORE)
    if key is None:
        with pytest.raises(SealingError, match=why):
            secrets.token(cluster.token["token"]["tokenId"])


def test_no_text_of_an_opened_secret_shows_it(cluster):
    secrets = secrets_of(cluster)
    credential = secrets.scram("al", SHA_512)
    token = secrets.token(cluster.token["token"]["tokenId"])
    file = io.StringIO()
    for each in (secrets, credential, token):
        Console(file=file, width=200).print(each)
        file.write(f"{each!r} {each!s} {each}")
    assert "***" in file.getvalue()
    for secret in (credential.stored_key, credential.server_key, token.hmac, b"\x07" * 32):
        for shape in (repr(secret)[2:20], secret.hex(), b64encode(secret).decode()[:20]):
            assert shape not in file.getvalue()
