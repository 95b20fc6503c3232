"""Access tokens, join tokens, revocations of certificates. `/v1/access-tokens` and its neighbours.

Rule: no request and no reply holds a token. Who makes a token draws it and sends its SHA-256. So
the controllers never see it before somebody uses it, and a repeated request makes nothing new.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta

from metadata.messages.message import ReplyMessage, RequestMessage
from metadata.types import Int64

Sha256 = Annotated[bytes, Meta(min_length=32, max_length=32)]
RoleName = Literal["broker", "controller"]


class CreateAccessTokenRequest(RequestMessage, frozen=True):
    """Make an access token for a principal."""

    principal: str
    """User:NAME or Broker:NUMBER."""
    sha256: Sha256
    """Of the token."""
    name: str = ""
    """What the token is for."""
    lifetime_ms: Int64 = -1
    """-1: 90 days."""
    dry_run: bool = False


class RotateAccessTokenRequest(RequestMessage, frozen=True):
    """Make a token that replaces another one, and let that one end soon."""

    sha256: Sha256
    """Of the new token."""
    lifetime_ms: Int64 = -1
    """Of the new token; -1: as long as the old one had."""
    overlap_ms: Int64 = 0
    """How long the old token still counts."""
    dry_run: bool = False


class RevokeTokenRequest(RequestMessage, frozen=True):
    """End a token at once."""

    dry_run: bool = False


class AccessTokenDescription(ReplyMessage, frozen=True):
    """One access token; times in ms since 1970."""

    token_id: str
    principal: str
    name: str
    made_by: str
    created_ms: int
    expires_ms: int
    revoked_ms: int
    """-1: it is not revoked."""
    replaces: str
    """The token that it replaced; empty: none."""


class ChangeAccessTokenReply(ReplyMessage, frozen=True):
    """The token after the change, and the log's end."""

    token: AccessTokenDescription
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()


class ListAccessTokensReply(ReplyMessage, frozen=True):
    """Access tokens by id, from one image."""

    offset: int
    epoch: int
    tokens: tuple[AccessTokenDescription, ...]
    age_ms: int | None = 0
    continuation: str | None = None
    """Set if there may be more, even if `tokens` is empty: ask again with it as `continuation`."""


class CreateJoinTokenRequest(RequestMessage, frozen=True):
    """Make a token with which one node can get its certificate, once."""

    role: RoleName
    node_id: Annotated[int, Meta(ge=0, le=2**31 - 1)]
    sha256: Sha256
    """Of the token's secret."""
    hosts: Annotated[tuple[str, ...], Meta(max_length=20)] = ()
    """Names and addresses at which others reach the node; none: those of this machine."""
    lifetime_ms: Int64 = -1
    """-1: 10 minutes."""
    dry_run: bool = False


class JoinTokenDescription(ReplyMessage, frozen=True):
    """One join token; times in ms since 1970, -1: that has not happened."""

    token_id: str
    role: str
    node_id: int
    hosts: tuple[str, ...]
    made_by: str
    created_ms: int
    expires_ms: int
    revoked_ms: int
    used_ms: int


class ChangeJoinTokenReply(ReplyMessage, frozen=True):
    """The token after the change, and the log's end."""

    token: JoinTokenDescription
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()


class ListJoinTokensReply(ReplyMessage, frozen=True):
    """Join tokens by id, from one image."""

    offset: int
    epoch: int
    tokens: tuple[JoinTokenDescription, ...]
    age_ms: int | None = 0
    continuation: str | None = None
    """Set if there may be more, even if `tokens` is empty: ask again with it as `continuation`."""


class JoinRequest(RequestMessage, frozen=True):
    """Get the certificate that the caller's join token is for."""

    csr: Annotated[bytes, Meta(max_length=8_192)]
    """A certificate signing request in PEM. Only its key counts, and that it is signed with it."""


class JoinReply(ReplyMessage, frozen=True):
    """The node's certificate. It is no secret: it is worth nothing without its key."""

    certificate: bytes
    """PEM."""
    authority: bytes
    """The certificate of the authority that signed it, PEM."""
    principal: str
    serial: str
    expires_ms: int
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None


class AuthorityReply(ReplyMessage, frozen=True):
    """The authority that signs the certificates of nodes that join."""

    certificate: bytes
    """PEM."""
    sha256: str
    """Of the certificate in DER, as hexadecimal digits: its fingerprint."""


class RevokeCertificatesRequest(RequestMessage, frozen=True):
    """Refuse one certificate, or those of a principal."""

    serial: Annotated[str, Meta(max_length=64)] | None = None
    """Hexadecimal digits; colons between them don't count."""
    principal: str | None = None
    """Such as User:alice. Give this or `serial`."""
    before_ms: Int64 = -1
    """Of a principal: refuse certificates that begin before this time; -1: before now."""
    dry_run: bool = False


class ReinstateCertificatesRequest(RequestMessage, frozen=True):
    """Take a revocation back."""

    serial: Annotated[str, Meta(max_length=64)] | None = None
    principal: str | None = None
    dry_run: bool = False


class RevocationDescription(ReplyMessage, frozen=True):
    """One revocation; times in ms since 1970."""

    serial: str | None
    principal: str | None
    before_ms: int
    revoked_by: str
    revoked_ms: int


class ChangeRevocationReply(ReplyMessage, frozen=True):
    """The revocation that was made or taken back, and the log's end."""

    revocation: RevocationDescription
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()


class ListRevocationsReply(ReplyMessage, frozen=True):
    """Revocations, from one image."""

    offset: int
    epoch: int
    revocations: tuple[RevocationDescription, ...]
    age_ms: int | None = 0
    continuation: str | None = None
    """Set if there may be more: ask again with it as `continuation`."""
