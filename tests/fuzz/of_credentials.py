"""Targets: what shows who somebody is, and what a controller reports of those whom it refused."""

from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding

from controller.trail.reports import decode_report, encode_report
from metadata.certifying import joining_key
from metadata.errors import LogbergError
from metadata.records import AttemptsRecord
from tests.fuzz.target import FuzzTarget
from tests.golden.records_write import VECTORS


class _NoReportError(Exception):
    """The bytes are no report."""


@cache
def _request_seeds() -> list[bytes]:
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "broker-1")])
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, None)
    return [request.public_bytes(Encoding.PEM)]


def _read_report(data: bytes) -> None:
    found = decode_report(1, data)
    if found is None:
        raise _NoReportError
    assert decode_report(1, encode_report(found)) == found


def _report_seeds() -> list[bytes]:
    records = [
        record
        for _, batch in VECTORS
        for record in batch
        if isinstance(record, AttemptsRecord) and record.controller_id == 1
    ]
    found = [encode_report([one]) for one in records]
    return [data for data in found if decode_report(1, data) is not None]


TARGETS = (
    FuzzTarget(
        "certificate-requests",
        "certificate signing requests, from whoever has a join token",
        joining_key,
        (LogbergError,),
        _request_seeds,
    ),
    FuzzTarget(
        "attempt-reports",
        "reports of refused attempts, from another controller",
        _read_report,
        (_NoReportError,),
        _report_seeds,
    ),
)
