"""A small certificate authority for tests."""

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from runtime.sockets.tls import TlsFiles

DAY = dt.timedelta(days=1)


class Authority:
    """Signs certificates and writes them, with their keys, into a folder."""

    def __init__(self, folder: Path, name: str = "test CA") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = _builder(self._name, self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        usage = x509.KeyUsage(
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
        builder = builder.add_extension(usage, critical=True).add_extension(
            x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
        )
        self.path = folder / "ca.pem"
        self.path.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))

    def issue(
        self,
        uri: str | tuple[str, ...] | None,
        name: str = "node",
        *,
        valid: tuple[dt.timedelta, dt.timedelta] = (-DAY, DAY),
        use: x509.ObjectIdentifier | None = None,
    ) -> TlsFiles:
        """Write a certificate for 127.0.0.1 and localhost, with `uri` (or several) if given.

        `valid`: from when until when, as seen from now. `use`: the only one that it is meant for.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [
            x509.DNSName("localhost"),
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        ]
        uris = (uri,) if isinstance(uri, str) else uri or ()
        names += [x509.UniformResourceIdentifier(each) for each in uris]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = (
            _builder(subject, self._name, key, valid)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if use is not None:
            builder = builder.add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        cert_path, key_path = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        cert_path.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))
        key_path.touch(mode=0o600)
        key_path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return TlsFiles(cert_path, key_path, self.path)

    def issue_with(self, stolen: TlsFiles, uri: str, name: str) -> TlsFiles:
        """Write a certificate that a node's key signed, with the node's own behind it."""
        issuer = x509.load_pem_x509_certificate(stolen.cert.read_bytes())
        signing = serialization.load_pem_private_key(stolen.key.read_bytes(), None)
        assert isinstance(signing, ec.EllipticCurvePrivateKey)
        forged = self.issue(uri, name)
        key = serialization.load_pem_private_key(forged.key.read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names: list[x509.GeneralName] = [
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
            x509.UniformResourceIdentifier(uri),
        ]
        builder = _builder(subject, issuer.subject, key).add_extension(
            x509.SubjectAlternativeName(names), critical=False
        )
        chain = _pem(builder.sign(signing, hashes.SHA256())) + stolen.cert.read_bytes()
        forged.cert.write_bytes(chain)
        return forged


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    valid: tuple[dt.timedelta, dt.timedelta] = (-DAY, DAY),
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + valid[0])
        .not_valid_after(now + valid[1])
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
