"""An authority for tests of nodes that join, and what such a node sends."""

import datetime as dt
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from logberg.local.local_ca import LocalCertificateAuthority
from metadata.certifying import NodeAuthority


@cache
def authority(cluster_id: str = "a-test-cluster") -> NodeAuthority:
    """Return the authority of a cluster; the same at each call."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        LocalCertificateAuthority(folder, cluster_id, dt.datetime.now(dt.UTC))
        return NodeAuthority((folder / "ca.crt").read_bytes(), (folder / "ca.key").read_bytes())


@cache
def signing_request() -> bytes:
    """Return a certificate signing request in PEM; the same at each call."""
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    return request.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
