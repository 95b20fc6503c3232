"""Signs certificates of nodes with the key of the cluster's authority.

Rule: the request of a node that joins brings its key and the proof that it holds the private half,
nothing else. Whom the certificate is for, its hosts and its times come from the join token. Its
signature is deterministic (RFC 6979), so one decision gives the same bytes whenever it is made.
"""

import datetime as dt
import ipaddress
from hashlib import sha256
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from metadata.errors import ErrorCode, LogbergError

SERIAL_BITS: Final = 159
"""So many bits of a serial number are drawn: 20 bytes, and positive (RFC 5280)."""
BACKDATED_MS: Final = 5 * 60 * 1000
"""A new certificate begins so long before now, for nodes whose clocks are behind."""
_PEM: Final = serialization.Encoding.PEM
_DER: Final = serialization.Encoding.DER
PublicKey = ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey


class AuthorityError(Exception):
    """The authority's files can't be used; the message says why."""


class JoiningKey(NamedTuple):
    """The public key of a request that proved to have the private one."""

    key: PublicKey
    sha256: bytes
    """Of the key in DER (SubjectPublicKeyInfo)."""


class CertificateWanted(NamedTuple):
    """What a certificate is to say."""

    name: str
    uri: str
    hosts: tuple[str, ...]
    serial: int
    begins_ms: int
    expires_ms: int


class NodeAuthority:
    """The cluster's authority, with its key."""

    def __init__(self, certificate_pem: bytes, key_pem: bytes) -> None:
        """Raises AuthorityError."""
        try:
            self._certificate = x509.load_pem_x509_certificate(certificate_pem)
            key = serialization.load_pem_private_key(key_pem, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise AuthorityError(f"it is no certificate or no key in PEM: {error}") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise AuthorityError("its key must be one of an elliptic curve")
        if key.public_key() != self._certificate.public_key():
            raise AuthorityError("the key is not that of the certificate")
        self._key = key

    @property
    def pem(self) -> bytes:
        """Its own certificate."""
        return self._certificate.public_bytes(_PEM)

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of its certificate in DER, as hexadecimal digits."""
        return sha256(self._certificate.public_bytes(_DER)).hexdigest()

    @property
    def expires_ms(self) -> int:
        """Until when it is valid, in ms since 1970."""
        return int(self._certificate.not_valid_after_utc.timestamp() * 1000)

    def sign(self, key: PublicKey, wanted: CertificateWanted) -> bytes:
        """Return a certificate in DER."""
        certificate = sign_certificate(
            self._certificate.subject, self._key, key, wanted, deterministic=True
        )
        return certificate.public_bytes(_DER)


def sign_certificate(
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    key: PublicKey,
    wanted: CertificateWanted,
    *,
    deterministic: bool = False,
) -> x509.Certificate:
    """Return the certificate of a process, for servers and clients.

    `deterministic`: the signature is the same each time. OpenSSL can do that from 3.2 on.
    """
    names = [x509.UniformResourceIdentifier(wanted.uri), *map(_host, wanted.hosts)]
    both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    return (
        x509.CertificateBuilder()
        .subject_name(common_name(wanted.name))
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(wanted.serial)
        .not_valid_before(_time(wanted.begins_ms))
        .not_valid_after(_time(wanted.expires_ms))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(both), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
        .sign(issuer_key, hashes.SHA256(), ecdsa_deterministic=deterministic or None)
    )


def common_name(name: str) -> x509.Name:
    """Return a certificate's name; X.509 allows 64 characters."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def joining_key(csr_pem: bytes) -> JoiningKey:
    """Return the key of a certificate signing request. Raises LogbergError."""
    try:
        csr = x509.load_pem_x509_csr(csr_pem)
        key = csr.public_key()
        proven = csr.is_signature_valid
    except (ValueError, TypeError, UnsupportedAlgorithm, InvalidSignature):
        raise _bad_csr("it is no certificate signing request in PEM") from None
    if not proven:
        raise _bad_csr("it is not signed with its own key")
    if not isinstance(key, PublicKey):
        raise _bad_csr("its key must be one of an elliptic curve, or Ed25519")
    der = key.public_bytes(_DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return JoiningKey(key, sha256(der).digest())


def as_pem(certificate_der: bytes) -> bytes:
    """Return a certificate in PEM."""
    return x509.load_der_x509_certificate(certificate_der).public_bytes(_PEM)


def serial_text(serial: int) -> str:
    """Return a serial number as OpenSSL writes it: upper case, an even number of digits."""
    digits = f"{serial:X}"
    return digits.zfill(len(digits) + len(digits) % 2)


def facts_of(certificate_der: bytes) -> tuple[str, int]:
    """Return a certificate's serial number, and until when it is valid in ms since 1970."""
    certificate = x509.load_der_x509_certificate(certificate_der)
    expires = certificate.not_valid_after_utc.timestamp()
    return serial_text(certificate.serial_number), int(expires * 1000)


def _bad_csr(why: str) -> LogbergError:
    return LogbergError(ErrorCode.INVALID_REQUEST, f"csr: {why}", {"field": "csr"})


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _time(ms: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(ms // 1000, dt.UTC)
