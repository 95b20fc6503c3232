"""What a credential is worth: the judgement on tokens and certificates, from an image and a time.

Rule: nothing fails open. A token that the log knows is judged by the log alone. What has expired,
was revoked or was used up is refused with the reason. `judged_at` says by which time: never one
before the log's last, so a node whose clock is behind takes no token that the log has outlived.

A token is looked up by its id, the beginning of its SHA-256, in constant time for any number of
tokens. Its whole hash is compared in constant time, too. So the time that a look-up takes says
nothing that helps to guess a token.
"""

import hmac
import re
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

from metadata.image import MetadataImage
from metadata.records import (
    AccessTokenRecord,
    CertificateRevocationRecord,
    JoinRole,
    JoinTokenRecord,
    RevokedBy,
)
from metadata.records.credentials import NEVER

ACCESS_PREFIX: Final = "lgb_"
"""An access token begins so. Scanners for leaked secrets find it by `lgb_[A-Za-z0-9_-]{43}`."""
JOIN_PREFIX: Final = "lgbj_"
"""A join token's secret begins so, and has the same length behind it."""
SECRET_BYTES: Final = 32
SECRET_CHARS: Final = 43
"""Of base64url, without padding."""
ID_DIGITS: Final = 16
_SHAPED: Final = re.compile(r"lgbj?_[A-Za-z0-9_-]{43}")
_SERIAL: Final = re.compile(r"[0-9A-F]{1,40}")


def digest_of(token: str) -> bytes:
    """Return the SHA-256 of a token."""
    return sha256(token.encode()).digest()


def id_of(digest: bytes) -> str:
    """Return the id of the token with this SHA-256."""
    return digest.hex()[:ID_DIGITS]


def judged_at(image: MetadataImage, wall_ms: int) -> int:
    """Return the time by which a node judges: its own, but never one before the log's last."""
    return max(wall_ms, image.timestamp_ms)


def judge_access_token(
    image: MetadataImage, digest: bytes, wall_ms: int
) -> AccessTokenRecord | str | None:
    """Return the token with this hash, or why it is refused; None: the log doesn't know it."""
    token = image.credentials.access_tokens.get(id_of(digest))
    if token is None or not hmac.compare_digest(token.sha256, digest):
        return None
    return _ended(f"access token {token.token_id}", token, judged_at(image, wall_ms)) or token


def judge_join_token(
    image: MetadataImage, digest: bytes, wall_ms: int
) -> JoinTokenRecord | str | None:
    """Return the join token with this hash, or why it is refused; None: there is none.

    A token that was used is returned, too. Who decides compares the keys (`JoinManager`).
    """
    token = image.credentials.join_tokens.get(id_of(digest))
    if token is None or not hmac.compare_digest(token.sha256, digest):
        return None
    return _ended(f"join token {token.token_id}", token, judged_at(image, wall_ms)) or token


def certificate_refusal(
    image: MetadataImage, principal: str, serial: str, begins_ms: Callable[[], int]
) -> str:
    """Return why a certificate is refused that is valid by its own content; empty: it is not.

    `begins_ms` returns from when it is valid. It is called where somebody's certificates are
    revoked by name.
    """
    revocations = image.credentials.revocations
    if not len(revocations):
        return ""
    by_serial = revocations.get((serial, RevokedBy.SERIAL))
    if by_serial is not None:
        return f"the certificate {serial} {_revoked(by_serial)}"
    by_principal = revocations.get((principal, RevokedBy.PRINCIPAL))
    if by_principal is None or begins_ms() >= by_principal.before_ms:
        return ""
    return (
        f"certificates of {principal} that begin before {time_text(by_principal.before_ms)} were "
        f"revoked at {time_text(by_principal.revoked_ms)}; show one that was made later"
    )


def judged_by(image: MetadataImage) -> tuple[object, ...]:
    """Return the parts of an image on which open connections rest."""
    return image.credentials, image.scram, image.tokens


def may_expire(image: MetadataImage) -> bool:
    """Return whether something of that can expire."""
    return len(image.credentials.access_tokens) > 0 or len(image.tokens.tokens) > 0


def malformed(token: str) -> str:
    """Return what is wrong with the form of a token that begins as ours do; empty: nothing."""
    if not token.startswith((ACCESS_PREFIX, JOIN_PREFIX)) or _SHAPED.fullmatch(token):
        return ""
    return (
        f"the bearer token begins as one of ours and has not the right length: it was cut off or "
        f"mistyped; it must have {SECRET_CHARS} letters, digits, - or _ behind its prefix"
    )


def is_serial(text: str) -> bool:
    """Tell whether a text is a serial number as records have it."""
    return _SERIAL.fullmatch(text) is not None


def joined_principal(token: JoinTokenRecord) -> str:
    """Return who the node of a join token is."""
    kind = "Controller" if token.role == JoinRole.CONTROLLER else "Broker"
    return f"{kind}:{token.node_id}"


def time_text(ms: int) -> str:
    """Return a time for people."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"


def _ended(what: str, token: AccessTokenRecord | JoinTokenRecord, now_ms: int) -> str:
    if token.revoked_ms != NEVER:
        return f"{what} was revoked at {time_text(token.revoked_ms)}: ask for a new one"
    if now_ms >= token.expires_ms:
        return f"{what} expired at {time_text(token.expires_ms)}: ask for a new one"
    return ""


def _revoked(revocation: CertificateRevocationRecord) -> str:
    return f"was revoked at {time_text(revocation.revoked_ms)}: ask for a new one"
