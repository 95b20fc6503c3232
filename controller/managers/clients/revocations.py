"""Revokes certificates that are valid by their own content, and takes it back (ADR 0089).

Rule: one certificate is named by its serial number, and all of a principal by its name. The second
kind has a time, and concerns certificates that begin before it. So the principal can get a new one.
"""

from collections.abc import Callable
from typing import Final

from controller.managers.clients.tokens import PRINCIPAL_MAX
from controller.result import ControllerResult
from metadata.credentials import is_serial, judged_at
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.image.credentials import RevocationKey
from metadata.messages import (
    ChangeRevocationReply,
    ReinstateCertificatesRequest,
    RevocationDescription,
    RevokeCertificatesRequest,
)
from metadata.plain_text import check_length, check_plain
from metadata.records import (
    CertificateRevocationRecord,
    Record,
    RemoveCertificateRevocationRecord,
    RevokedBy,
)

_KINDS: Final = ("User:", "Broker:", "Controller:")


class RevocationManager:
    """Decides about revocations."""

    def __init__(self, wall_ms: Callable[[], int]) -> None:
        """`wall_ms`: the time at which certificates are revoked."""
        self._wall_ms = wall_ms

    def revoke(
        self, image: MetadataImage, request: RevokeCertificatesRequest, revoked_by: str
    ) -> ControllerResult:
        """Refuse certificates from now on. Raises LogbergError."""
        value, kind = _named(request.serial, request.principal)
        now = judged_at(image, self._wall_ms())
        before = -1
        if kind == RevokedBy.PRINCIPAL:
            before = now if request.before_ms == -1 else request.before_ms
            if not 0 <= before <= now:
                raise LogbergError(
                    ErrorCode.INVALID_REQUEST,
                    "beforeMs: give a time that is over, in ms since 1970, or -1 for now",
                    {"field": "beforeMs"},
                )
        known = image.credentials.revocations.get((value, kind))
        if known is not None and known.before_ms >= before:
            return _result((), known, dry_run=request.dry_run)
        record = CertificateRevocationRecord(kind, value, before, revoked_by, now)
        return _result((record,), record, dry_run=request.dry_run)

    def reinstate(
        self, image: MetadataImage, request: ReinstateCertificatesRequest
    ) -> ControllerResult:
        """Take a revocation back. Raises LogbergError."""
        value, kind = _named(request.serial, request.principal)
        known = image.credentials.revocations.get((value, kind))
        if known is None:
            raise LogbergError(ErrorCode.RESOURCE_NOT_FOUND, f"no revocation names {value[:100]!r}")
        record = RemoveCertificateRevocationRecord(kind, value)
        return _result((record,), known, dry_run=request.dry_run)


def describe_revocation(record: CertificateRevocationRecord) -> RevocationDescription:
    """Describe a revocation."""
    by_serial = record.kind == RevokedBy.SERIAL
    return RevocationDescription(
        serial=record.value if by_serial else None,
        principal=None if by_serial else record.value,
        before_ms=record.before_ms,
        revoked_by=record.revoked_by,
        revoked_ms=record.revoked_ms,
    )


def _named(serial: str | None, principal: str | None) -> RevocationKey:
    """Return what a request names. Raises LogbergError."""
    if (serial is None) is (principal is None):
        raise LogbergError(ErrorCode.INVALID_REQUEST, "give serial or principal, and not both")
    if serial is not None:
        # OpenSSL writes an even number of digits, so a leading zero stays; others drop it.
        digits = serial.replace(":", "").upper()
        if not is_serial(digits):
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                f"serial: {serial[:50]!r} is no serial number; give up to 40 hexadecimal digits",
                {"field": "serial"},
            )
        digits = digits.lstrip("0") or "0"
        return digits.zfill(len(digits) + len(digits) % 2), int(RevokedBy.SERIAL)
    assert principal is not None
    check_plain("principal", principal)
    if not principal.startswith(_KINDS) or principal.endswith(":"):
        raise LogbergError(
            ErrorCode.INVALID_PRINCIPAL_TYPE,
            f"principal: {principal[:50]!r} shows no certificate; give User:NAME, Broker:NUMBER or "
            "Controller:NUMBER",
            {"field": "principal"},
        )
    check_length("principal", principal, PRINCIPAL_MAX)
    return principal, int(RevokedBy.PRINCIPAL)


def _result(
    records: tuple[Record, ...], record: CertificateRevocationRecord, *, dry_run: bool
) -> ControllerResult:
    reply = ChangeRevocationReply(describe_revocation(record), dry_run=dry_run)
    return ControllerResult(records, reply)
