"""Secrets never enter the log in clear: not as records, answers, digests or snapshots."""

import hashlib
import hmac
from base64 import b64decode, b64encode

import msgspec
import pytest

from controller.managers.clients.tokens import TokenLimits, TokenManager, TokenRequester
from ledger.batch import SEALED
from metadata.acl_rules import AclPolicy
from metadata.features import BASE
from metadata.image import EMPTY
from metadata.messages import CreateTokenRequest
from metadata.records import DelegationTokenRecord, ScramMechanism
from metadata.sealed_places import scram_place, token_hmac
from metadata.sealing import ClusterKey, salted_hash
from metadata.uuids import uuid4_from, uuid7, uuid_text
from runtime.http.requests import Caller
from tests.unit.controller.cluster import Cluster

KEY = ClusterKey(b"\x07" * 32)
SALT = b"some salt"
SALTED = hashlib.pbkdf2_hmac("sha256", b"a canary password", SALT, 4096)
CLIENT_KEY = hmac.digest(SALTED, b"Client Key", "sha256")
STORED = hashlib.sha256(CLIENT_KEY).digest()
SERVER = hmac.digest(SALTED, b"Server Key", "sha256")


@pytest.fixture
def cluster():
    return Cluster(cluster_key=KEY)


def set_credential(cluster, **options):
    upsertion = {
        "name": "al",
        "mechanism": "SCRAM-SHA-256",
        "iterations": 4096,
        "salt": b64encode(SALT).decode(),
        "saltedPassword": b64encode(SALTED).decode(),
    }
    body = {"upsertions": [upsertion], **options.pop("more", {})}
    return cluster.ask("POST", "/v1/users/scram", body, **options)


def assert_nowhere(cluster, *secrets):
    """No file of any node, no answer and no log line has a secret, however it is written."""
    cluster.controllers[1].write_checkpoint()
    cluster.run(2)
    shapes = {
        shape
        for secret in secrets
        for shape in (secret, b64encode(secret)[:-3], secret.hex().encode())
    }
    said = [cluster.ask("GET", path)[1] for path in ("/v1/users", "/v1/tokens", "/v1/status")]
    said.append(cluster.ask("GET", "/v1/log", query={"format": "json"})[1])
    texts = [msgspec.json.encode(each) for each in said]
    texts.append(repr(cluster.logs.entries).encode())
    for node_id, platter in cluster.platters.items():
        files = {name: bytes(inode.content) for name, inode in platter.names.items()}
        assert any("checkpoint" in name for name in files) or node_id != 1
        texts += files.values()
    for text in texts:
        for shape in shapes:
            assert shape not in text


def test_a_credential_is_sealed_and_opens_with_the_key(cluster):
    status, reply = set_credential(cluster)
    assert (status, reply["users"][0]["error"]) == (200, None)
    assert_nowhere(cluster, SALTED, STORED, SERVER)
    record = cluster.image.scram.credentials["al", 1]
    mechanism = ScramMechanism.SCRAM_SHA_256
    opened = {
        field: KEY.open_with_salt(scram_place("al", mechanism, field), block)
        for field, block in (("storedKey", record.stored_key), ("serverKey", record.server_key))
    }
    assert {field: secret for field, (_, secret) in opened.items()} == {
        "storedKey": STORED,
        "serverKey": SERVER,
    }
    (batch,) = [b for b in cluster.batches() if SEALED in b.header.extensions]
    hashes = msgspec.msgpack.decode(batch.header.extensions[SEALED])
    assert hashes == [salted_hash(*opened[field]) for field in ("storedKey", "serverKey")]
    cluster.assert_equal()


def test_the_digest_of_a_request_can_not_be_used_to_guess_the_password(cluster):
    """Who knows the whole request must not be able to tell it from its digest in the log."""
    set_credential(cluster)
    (batch,) = [b for b in cluster.batches() if SEALED in b.header.extensions]
    with_key = batch.header.provenance.request_digest
    other = Cluster(cluster_key=ClusterKey(b"\x08" * 32))
    set_credential(other)
    (batch,) = [b for b in other.batches() if SEALED in b.header.extensions]
    assert batch.header.provenance.request_digest != with_key


def test_a_dry_run_shows_the_record_without_its_secrets(cluster):
    status, reply = set_credential(cluster, more={"dryRun": True})
    assert status == 200
    data = reply["records"][0]["data"]
    assert data["storedKey"] == data["serverKey"] == data["salt"] == "***"
    assert not len(cluster.image.scram.credentials)


def test_a_controller_with_another_key_seals_nothing():
    """At the lowest levels the log does not name the key, so such a controller may lead."""
    cluster = Cluster(cluster_key=KEY, initial_features=BASE)
    set_credential(cluster)
    cluster.config["cluster_key"] = ClusterKey(b"\x09" * 32)
    cluster.kill(2)
    cluster.start(2)
    cluster.run(0.5)
    cluster.lead(2)
    status, reply = set_credential(cluster)
    assert status == 200
    error = reply["users"][0]["error"]
    assert error["code"] == "SECURITY_DISABLED"
    assert KEY.id.hex() in error["message"]


def create(cluster, request_id, principal="User:alice", **body):
    return cluster.ask(
        "POST",
        "/v1/tokens",
        {"renewers": [], **body},
        headers={"x-logberg-request-id": request_id},
        caller=Caller(principal, "token", "10.0.0.7"),
    )


@pytest.fixture
def request_id(cluster):
    return uuid_text(uuid7(cluster.processes[1].clock.wall_ms(), 5))


def test_only_the_answer_has_a_tokens_hmac_and_a_retry_has_it_too(cluster, request_id):
    status, reply = create(cluster, request_id)
    assert status == 200
    secret = b64decode(reply["hmac"])
    assert secret == token_hmac(KEY, reply["token"]["tokenId"])
    assert len(cluster.image.tokens.tokens) == 1
    cluster.lead(2)
    assert create(cluster, request_id)[1]["hmac"] == reply["hmac"]
    assert len(cluster.image.tokens.tokens) == 1
    assert_nowhere(cluster, secret)
    status, _ = cluster.ask(
        "POST", f"/v1/tokens/{reply['token']['tokenId']}/renew", {"hmac": reply["hmac"]}
    )
    assert status == 200
    assert_nowhere(cluster, secret)


def test_another_caller_with_the_same_request_id_gets_no_token(cluster, request_id):
    create(cluster, request_id)
    status, reply = create(cluster, request_id, principal="User:mallory")
    assert (status, reply["code"]) == (409, "REQUEST_ID_REUSED")


def test_a_dry_run_has_no_hmac(cluster, request_id):
    status, reply = create(cluster, request_id, dryRun=True)
    assert (status, reply["hmac"]) == (200, "")
    assert not len(cluster.image.tokens.tokens)


def test_tokens_are_swept_by_whoever_leads_and_only_those_that_expired():
    cluster = Cluster(cluster_key=KEY, token_period_ms=10_000)
    ids = []
    for n in range(3):
        request_id = uuid_text(uuid7(cluster.processes[1].clock.wall_ms(), 100 + n))
        ids.append(create(cluster, request_id)[1]["token"]["tokenId"])
        cluster.run(3)
    cluster.lead(3)
    cluster.run(2.5)
    assert sorted(cluster.image.tokens.tokens.keys()) == sorted(ids[1:])
    end = cluster.image.offset
    cluster.run(1)
    assert cluster.image.offset == end
    cluster.run(10)
    assert not len(cluster.image.tokens.tokens)
    names = [batch.header.provenance.operation for batch in cluster.batches()]
    assert 2 <= names.count("ExpireTokens") <= 3
    cluster.assert_equal()


def test_a_thousand_tokens_that_expire_together_go_in_batches(monkeypatch):
    cluster = Cluster(nodes=1, cluster_key=KEY, token_period_ms=10_000)
    for n in range(12):
        request_id = uuid_text(uuid7(cluster.processes[1].clock.wall_ms(), 100 + n))
        create(cluster, request_id)
    monkeypatch.setattr("controller.managers.clients.tokens.SWEPT_MAX", 5)
    cluster.run(20)
    assert not len(cluster.image.tokens.tokens)
    swept = [b for b in cluster.batches() if b.header.provenance.operation == "ExpireTokens"]
    assert [b.header.count for b in swept] == [5, 5, 2]


def test_tokens_are_swept_also_while_others_change_all_the_time():
    """Seed 4 of the kind `clients`: each change put the sweep off by a second."""
    cluster = Cluster(nodes=1, cluster_key=KEY, token_period_ms=5_000)
    reply = create(cluster, uuid_text(uuid7(cluster.processes[1].clock.wall_ms(), 1)))[1]
    for n in range(30):
        request_id = uuid_text(uuid7(cluster.processes[1].clock.wall_ms(), 100 + n))
        create(cluster, request_id)
        cluster.run(0.3)
    assert cluster.image.tokens.tokens.get(reply["token"]["tokenId"]) is None


class Dice:
    """Draws what a test says."""

    def __init__(self, *bits: int) -> None:
        self._bits = list(bits)

    def getrandbits(self, k: int) -> int:
        return self._bits.pop(0)


def test_no_id_of_a_token_begins_with_a_dash():
    """A command would take it for an option, as one in 64 times it did."""
    dashed, fine = 0b111110 << 116, 0b111101 << 116
    assert uuid_text(uuid4_from(dashed)).startswith("-")
    manager = TokenManager(
        Dice(dashed, dashed, fine),  # type: ignore[arg-type]
        KEY,
        TokenLimits(1_000, 1_000),
        AclPolicy(frozenset(), allow_if_no_acl=False),
        lambda: 0,
    )
    result = manager.create(EMPTY, CreateTokenRequest(), TokenRequester("User:alice", "*"))
    (token,) = result.records
    assert isinstance(token, DelegationTokenRecord)
    assert token.token_id == uuid_text(uuid4_from(fine))
