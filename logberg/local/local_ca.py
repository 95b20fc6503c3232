"""A small certificate authority: of `logberg up` for clusters on one machine, and of `certs`.

Rule: even a local cluster runs the code that production runs, so `logberg up` issues real
certificates: one for each process, named by a URI that says what it is
(`quorum://<cluster>/<node>`, `broker://<cluster>/<id>`, `user://<cluster>/<name>`). Keys are
readable by their owner only. Leaves live 90 days and are renewed at every `up` that finds less
than 30 left; the authority lives ten years. No leaf lives longer than its authority.
"""

import datetime as dt
import os
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from metadata.certifying import CertificateWanted, common_name, sign_certificate

LEAF_DAYS = 90
LOOPBACK = ("localhost", "127.0.0.1", "::1")
_RENEW_DAYS = 30
_CA_DAYS = 3650
_BACKDATE = dt.timedelta(minutes=5)


class LocalCertificateAuthority:
    """The authority in a folder: `ca.crt`, `ca.key`, and a pair for each name."""

    def __init__(self, folder: Path, cluster_id: str, now: dt.datetime) -> None:
        self._folder = folder
        self._cluster_id = cluster_id
        self._now = now
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.ca_path = folder / "ca.crt"
        key_path = folder / "ca.key"
        if not (self.ca_path.exists() and key_path.exists()):
            self._create(key_path)
        self._key = _load_key(key_path)
        self._certificate = x509.load_pem_x509_certificate(self.ca_path.read_bytes())

    @property
    def certificate(self) -> x509.Certificate:
        """The authority's own certificate."""
        return self._certificate

    def issue(self, name: str, uri: str) -> tuple[Path, Path]:
        """Return the certificate's and the key's path for `uri`, issuing them where needed."""
        certificate_path = self._folder / f"{name}.crt"
        key_path = self._folder / f"{name}.key"
        if not (key_path.exists() and self._is_fresh(certificate_path)):
            self.issue_new(name, uri)
        return certificate_path, key_path

    def issue_new(
        self, name: str, uri: str, hosts: Sequence[str] = LOOPBACK, days: int = LEAF_DAYS
    ) -> None:
        """Write a new key and its certificate, over the old ones if there are any.

        `hosts`: names and addresses at which others reach the process.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(key.public_key(), name, uri, hosts, days)
        _write_private(self._folder / f"{name}.key", _key_pem(key))
        _write(
            self._folder / f"{name}.crt",
            certificate.public_bytes(serialization.Encoding.PEM),
            0o644,
        )

    def issue_joined(self, name: str, uri: str) -> Path:
        """Return a file with key and certificate for `uri`, as Kafka reads them."""
        certificate, key = self.issue(name, uri)
        path = self._folder / f"{name}.pem"
        _write_private(path, key.read_bytes() + certificate.read_bytes())
        return path

    def _is_fresh(self, path: Path) -> bool:
        if not path.exists():
            return False
        left = x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc - self._now
        return left > dt.timedelta(days=_RENEW_DAYS)

    def _create(self, key_path: Path) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = authority_name(self._cluster_id)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - _BACKDATE)
            .not_valid_after(self._now + dt.timedelta(days=_CA_DAYS))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_ca_usage(), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .sign(key, hashes.SHA256())
        )
        _write_private(key_path, _key_pem(key))
        self.ca_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def _sign(
        self,
        public_key: ec.EllipticCurvePublicKey,
        name: str,
        uri: str,
        hosts: Sequence[str],
        days: int,
    ) -> x509.Certificate:
        end = min(self._now + dt.timedelta(days=days), self._certificate.not_valid_after_utc)
        wanted = CertificateWanted(
            name,
            uri,
            tuple(hosts),
            x509.random_serial_number(),
            _ms(self._now - _BACKDATE),
            _ms(end),
        )
        return sign_certificate(self._certificate.subject, self._key, public_key, wanted)


def authority_name(cluster_id: str) -> x509.Name:
    """Return what the certificate of a cluster's authority is called."""
    return common_name(f"Logberg local authority of {cluster_id}")


def _ms(time: dt.datetime) -> int:
    return int(time.timestamp() * 1000)


def _ca_usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"{path} does not hold an elliptic-curve key; remove it to have one made")
    return key


def _write_private(path: Path, data: bytes) -> None:
    """Write a file that was never readable by others, not even for a moment."""
    _write(path, data, 0o600)


def _write(path: Path, data: bytes, mode: int) -> None:
    """Replace a file, so that no reader sees half of it."""
    beside = path.with_suffix(path.suffix + ".part")
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    beside.rename(path)
