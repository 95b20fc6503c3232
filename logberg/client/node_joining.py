"""Lets a node join: gets the certificate that its join token is for.

Rules:

- The node draws its key, and the key never leaves its folder. It is written before the token is
  used. So a try whose answer got lost can be repeated: the controllers give the same key the same
  certificate.
- The node trusts nobody at first. It asks any controller for the authority's certificate, and
  takes the one that has the fingerprint in the token. It shows the token only to a server that
  proves by this authority to be a controller.
"""

import datetime as dt
import ssl
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

import aiohttp
import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from logberg.client.access import Access
from logberg.client.client import LogbergClient
from logberg.client.drawn_tokens import JoinToken
from metadata.messages.credentials import AuthorityReply, JoinReply
from metadata.messages.errors import ErrorReply
from runtime.disk.secret_file import SecretFileError, write_new_text

KEY_FILE: Final = "node.key"
CERTIFICATE_FILE: Final = "node.crt"
AUTHORITY_FILE: Final = "ca.crt"
_BYTES_MAX: Final = 64 * 1024
_PEM: Final = serialization.Encoding.PEM


class JoinError(Exception):
    """The node can't join; the message says why and what to do."""


class Joined(NamedTuple):
    """What a node has now."""

    principal: str
    serial: str
    expires: dt.datetime
    key: Path
    certificate: Path
    authority: Path


async def join_cluster(
    urls: Sequence[str], token: JoinToken, folder: Path, deadline_s: float
) -> Joined:
    """Get the certificate, and write key, certificate and authority into `folder`.

    Raises JoinError, SecretFileError, ClientError.
    """
    if not all(url.startswith("https://") for url in urls):
        raise JoinError("a node joins over https:// only: the token would be sent in clear")
    _check_no_certificate(folder)
    authority = await _authority(urls, token.authority, deadline_s)
    key = _prepared(folder, authority)
    access = Access(token.secret, str(folder / AUTHORITY_FILE))
    async with LogbergClient(urls, access, deadline_s, "logberg-join") as client:
        reply = await client.join(_request(key), reason="a node joins")
    return _keep(reply, key, folder)


def _prepared(folder: Path, authority: bytes) -> ec.EllipticCurvePrivateKey:
    """Write the authority into the folder; return the node's key."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = _key(folder / KEY_FILE)
    (folder / AUTHORITY_FILE).write_bytes(authority)
    return key


def _check_no_certificate(folder: Path) -> None:
    path = folder / CERTIFICATE_FILE
    if path.exists():
        raise JoinError(
            f"{path} is there already: this node has joined. Move it and {KEY_FILE} away to join "
            "again with a new key"
        )


async def _authority(urls: Sequence[str], fingerprint: str, deadline_s: float) -> bytes:
    """Return the authority's certificate in PEM, from the first controller that has the right one.

    Nothing is sent that others may not see, so the server need not prove anything.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    problems = []
    timeout = aiohttp.ClientTimeout(total=deadline_s)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=context),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=timeout,
    ) as session:
        for url in urls:
            try:
                async with session.get(f"{url}/v1/authority", allow_redirects=False) as answer:
                    body = await answer.content.read(_BYTES_MAX)
                    found = _read_authority(answer.status, body, fingerprint)
            except (aiohttp.ClientError, TimeoutError) as error:
                found = f"no answer ({error or type(error).__name__})"
            if isinstance(found, bytes):
                return found
            problems.append(f"{url}: {found}")
    raise JoinError("; ".join(problems))


def _read_authority(status: int, body: bytes, fingerprint: str) -> bytes | str:
    """Return the certificate, or why it isn't taken."""
    try:
        if status != 200:
            return msgspec.json.decode(body, type=ErrorReply).message
        pem = msgspec.json.decode(body, type=AuthorityReply).certificate
        der = x509.load_pem_x509_certificate(pem).public_bytes(serialization.Encoding.DER)
    except (msgspec.MsgspecError, ValueError, UnicodeDecodeError):
        return f"status {status}, and an answer that is no authority's certificate"
    if sha256(der).hexdigest() != fingerprint:
        return (
            "its authority has another fingerprint than the token says: it belongs to another "
            "cluster, or somebody answers in its place"
        )
    return pem


def _key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Return the key in a file, drawn now if there is none. Raises JoinError, SecretFileError."""
    if not path.exists():
        key = ec.generate_private_key(ec.SECP256R1())
        pem = key.private_bytes(
            _PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        write_new_text(path, pem.decode().rstrip("\n"))
        return key
    if path.stat().st_mode & 0o077:
        raise SecretFileError(f"others than its user may open {path}; remove it and join again")
    try:
        found = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        found = None
    if not isinstance(found, ec.EllipticCurvePrivateKey):
        raise JoinError(f"{path} holds no key of an elliptic curve; remove it to have one drawn")
    return found


def _request(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a certificate signing request. The controllers read nothing of it but the key."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a node that joins")])
    request = x509.CertificateSigningRequestBuilder().subject_name(name)
    return request.sign(key, hashes.SHA256()).public_bytes(_PEM)


def _keep(reply: JoinReply, key: ec.EllipticCurvePrivateKey, folder: Path) -> Joined:
    certificate = x509.load_pem_x509_certificate(reply.certificate)
    if certificate.public_key() != key.public_key():
        raise JoinError("the controllers answered with a certificate for another key; join again")
    path = folder / CERTIFICATE_FILE
    beside = path.with_suffix(".part")
    beside.write_bytes(reply.certificate)
    beside.rename(path)
    return Joined(
        reply.principal,
        reply.serial,
        certificate.not_valid_after_utc,
        folder / KEY_FILE,
        path,
        folder / AUTHORITY_FILE,
    )
