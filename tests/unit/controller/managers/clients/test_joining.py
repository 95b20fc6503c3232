"""Join tokens: one node, one certificate, once; and whoever tries it again."""

import datetime as dt
from base64 import b64decode, b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from logberg.local.local_ca import LocalCertificateAuthority
from metadata.certifying import AuthorityError, NodeAuthority
from runtime.http.requests import Caller
from tests.unit.controller.cluster import CLUSTER_ID, Cluster

pytestmark = pytest.mark.simulation
SECRET = "lgbj_" + "s" * 43
TOKEN_ID = sha256(SECRET.encode()).hexdigest()[:16]
NODE = Caller(f"JoinToken:{TOKEN_ID}", "join-token", "10.0.0.9", only_path="/v1/join")
NOW = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> NodeAuthority:
    folder: Path = tmp_path_factory.mktemp("ca")
    LocalCertificateAuthority(folder, CLUSTER_ID, dt.datetime.now(dt.UTC))
    return NodeAuthority((folder / "ca.crt").read_bytes(), (folder / "ca.key").read_bytes())


@pytest.fixture
def cluster(authority: NodeAuthority) -> Any:
    return Cluster(authority=authority)


def request(key: Any = None, forged: bool = False) -> bytes:
    """Return a request for a certificate that asks for more than the token gives."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "quorum://other/1")])
    uri = x509.SubjectAlternativeName([x509.UniformResourceIdentifier("quorum://other/1")])
    built = x509.CertificateSigningRequestBuilder().subject_name(name)
    signed = built.add_extension(uri, critical=False).sign(key, hashes.SHA256())
    if not forged:
        return signed.public_bytes(serialization.Encoding.PEM)
    der = bytearray(signed.public_bytes(serialization.Encoding.DER))
    der[-1] ^= 1
    body = b64encode(bytes(der)).decode()
    return (
        f"-----BEGIN CERTIFICATE REQUEST-----\n{body}\n-----END CERTIFICATE REQUEST-----\n".encode()
    )


def create(cluster: Any, **more: Any) -> Any:
    digest = b64encode(sha256(SECRET.encode()).digest()).decode()
    body = {"role": "broker", "nodeId": 7, "sha256": digest, **more}
    return cluster.ask("POST", "/v1/join-tokens", body)


def join(cluster: Any, csr: bytes, caller: Caller = NODE) -> Any:
    return cluster.ask("POST", "/v1/join", {"csr": b64encode(csr).decode()}, caller=caller)


def certificate_in(reply: Any) -> x509.Certificate:
    return x509.load_pem_x509_certificate(b64decode(reply["certificate"]))


def test_a_node_gets_the_certificate_that_its_token_is_for(cluster: Any) -> None:
    create(cluster, hosts=["b7.example", "10.0.0.9"])
    key = ec.generate_private_key(ec.SECP256R1())
    status, reply = join(cluster, request(key))
    assert status == 200, reply
    found = certificate_in(reply)
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == [
        f"broker://{CLUSTER_ID}/7"
    ], "what the request says of itself does not count"
    assert names.get_values_for_type(x509.DNSName) == ["b7.example"]
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.9"]
    assert found.public_key() == key.public_key()
    authority = x509.load_pem_x509_certificate(b64decode(reply["authority"]))
    found.verify_directly_issued_by(authority)
    usage = found.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert usage.ca is False
    assert reply["principal"] == "Broker:7"
    assert int(reply["serial"], 16) == found.serial_number
    record = cluster.image.credentials.join_tokens[TOKEN_ID]
    assert record.used_ms > 0
    assert record.certificate == found.public_bytes(serialization.Encoding.DER)
    cluster.assert_equal()


def test_a_controller_joins_with_a_controller_s_name(cluster: Any) -> None:
    create(cluster, role="controller", nodeId=4)
    _, reply = join(cluster, request())
    assert reply["principal"] == "Controller:4"
    names = certificate_in(reply).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    uris = names.value.get_values_for_type(x509.UniformResourceIdentifier)
    assert uris == [f"quorum://{CLUSTER_ID}/4"]


def test_a_token_that_was_used_is_refused_to_another_key(cluster: Any) -> None:
    create(cluster)
    assert join(cluster, request())[0] == 200
    before = cluster.image.credentials.join_tokens[TOKEN_ID]
    status, reply = join(cluster, request())
    assert (status, reply["code"]) == (401, "UNAUTHENTICATED")
    assert "was used already, by another key" in reply["message"]
    assert cluster.image.credentials.join_tokens[TOKEN_ID] == before


def test_a_node_whose_answer_got_lost_gets_the_same_certificate(cluster: Any) -> None:
    create(cluster)
    csr = request(ec.generate_private_key(ec.SECP256R1()))
    first, again = join(cluster, csr)[1], join(cluster, csr)[1]
    assert first["certificate"] == again["certificate"]
    cluster.lead(2)
    assert join(cluster, csr)[1]["certificate"] == first["certificate"], "also at another leader"


def test_an_expired_or_revoked_token_gives_nothing(cluster: Any) -> None:
    create(cluster, lifetimeMs=1_000)
    cluster.run(2)
    status, reply = join(cluster, request())
    assert status == 401
    assert "has expired" in reply["message"]
    cluster.ask("POST", f"/v1/join-tokens/{TOKEN_ID}/revoke", {})
    status, reply = join(cluster, request())
    assert status == 401
    assert "was revoked" in reply["message"]
    assert cluster.image.credentials.join_tokens[TOKEN_ID].certificate == b""


@pytest.mark.parametrize(
    "csr",
    [b"", b"x", request(forged=True), request(rsa.generate_private_key(65537, 2048))],
    ids=["empty", "no csr", "forged", "a key of another kind"],
)
def test_a_bad_request_uses_no_token_up(cluster: Any, csr: bytes) -> None:
    create(cluster)
    status, reply = join(cluster, csr)
    assert (status, reply["code"]) == (400, "INVALID_REQUEST"), reply
    assert "csr:" in reply["message"]
    assert cluster.image.credentials.join_tokens[TOKEN_ID].used_ms == -1


@pytest.mark.parametrize(
    "caller", [Caller(), Caller("User:a", "token"), Caller(f"JoinToken:{TOKEN_ID}", "token")]
)
def test_nobody_else_can_use_a_token(cluster: Any, caller: Caller) -> None:
    create(cluster)
    status, reply = join(cluster, request(), caller)
    assert (status, reply["code"]) == (401, "UNAUTHENTICATED")
    assert "a node joins with its join token" in reply["message"]


def test_without_the_authority_s_key_no_token_is_made_and_none_used_up(
    authority: NodeAuthority,
) -> None:
    cluster = Cluster()
    status, reply = create(cluster)
    assert (status, reply["code"]) == (403, "SECURITY_DISABLED")
    assert "[join]" in reply["message"]
    assert authority


def test_a_new_certificate_of_a_revoked_principal_is_not_revoked(cluster: Any) -> None:
    _, revoked = cluster.ask("POST", "/v1/revocations", {"principal": "Broker:7"})
    create(cluster)
    _, reply = join(cluster, request())
    begins = certificate_in(reply).not_valid_before_utc.timestamp() * 1000
    assert begins >= revoked["revocation"]["beforeMs"]


@pytest.mark.parametrize(
    "more",
    [
        {"hosts": ["a b"]},
        {"hosts": ["a\n"]},
        {"hosts": [""]},
        {"lifetimeMs": 0},
        {"lifetimeMs": 2**50},
        {"nodeId": -1},
        {"role": "user"},
    ],
)
def test_a_bad_token_is_not_made(cluster: Any, more: Any) -> None:
    assert create(cluster, **more)[0] == 400
    assert not len(cluster.image.credentials.join_tokens)


def test_a_token_s_hash_is_used_once(cluster: Any) -> None:
    create(cluster)
    status, reply = create(cluster, nodeId=8)
    assert (status, reply["code"]) == (400, "DUPLICATE_RESOURCE")


def test_the_authority_is_shown_to_everybody(cluster: Any, authority: NodeAuthority) -> None:
    status, reply = cluster.ask("GET", "/v1/authority", None, caller=Caller())
    assert status == 200
    assert reply["sha256"] == authority.fingerprint
    assert b64decode(reply["certificate"]) == authority.pem


def test_an_authority_needs_its_own_key(authority: NodeAuthority) -> None:
    key = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    with pytest.raises(AuthorityError, match="not that of the certificate"):
        NodeAuthority(authority.pem, key)
    with pytest.raises(AuthorityError, match="no certificate or no key"):
        NodeAuthority(b"x", key)
