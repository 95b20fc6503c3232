"""Delegation tokens. `POST`, `GET /v1/tokens`, `POST /v1/tokens/{id}/renew`, `…/expire` (KIP-48).

Rule: a token's HMAC is a secret, like a password. Only the answer to its creation shows it.
"""

from typing import Annotated, Any

from msgspec import Meta

from metadata.messages.message import ReplyMessage, RequestMessage
from metadata.types import Int64

_Hmac = Annotated[bytes, Meta(max_length=128)]


class CreateTokenRequest(RequestMessage, frozen=True):
    """Create a token for the caller, or for another user if the caller may do that."""

    owner: str | None = None
    """A principal, such as User:alice; null: the caller."""
    renewers: Annotated[tuple[str, ...], Meta(max_length=100)] = ()
    """The principals, besides the owner, that may renew the token or let it expire."""
    max_lifetime_ms: Int64 = -1
    """-1: the controllers' own limit."""
    dry_run: bool = False


class RenewTokenRequest(RequestMessage, frozen=True):
    """Let a token expire later, at most at the end of its longest lifetime."""

    hmac: _Hmac
    """Proves that the caller holds the token."""
    renew_period_ms: Int64 = -1
    """From now on; -1: the controllers' own period."""
    dry_run: bool = False

    def __repr__(self) -> str:
        return f"RenewTokenRequest({self.renew_period_ms})"


class ExpireTokenRequest(RequestMessage, frozen=True):
    """Let a token expire earlier."""

    hmac: _Hmac
    """Proves that the caller holds the token."""
    expiry_time_period_ms: Int64 = -1
    """From now on; -1: at once."""
    dry_run: bool = False

    def __repr__(self) -> str:
        return f"ExpireTokenRequest({self.expiry_time_period_ms})"


class TokenDescription(ReplyMessage, frozen=True):
    """One token, without its HMAC; times in ms since 1970."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp_ms: int
    expiry_timestamp_ms: int
    max_timestamp_ms: int


class CreateTokenReply(ReplyMessage, frozen=True):
    """The new token with its secret, and the log's end after the change."""

    token: TokenDescription
    hmac: bytes = b""
    """The secret; empty in a dry run. No other request returns it."""
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()

    def __repr__(self) -> str:
        return f"CreateTokenReply({self.token!r})"


class ChangeTokenReply(ReplyMessage, frozen=True):
    """When the token expires now."""

    token_id: str
    expiry_timestamp_ms: int
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()


class ListTokensReply(ReplyMessage, frozen=True):
    """Tokens by id, from one image."""

    offset: int
    epoch: int
    tokens: tuple[TokenDescription, ...]
    age_ms: int | None = 0
    continuation: str | None = None
    """Set if there may be more, even if `tokens` is empty: ask again with it as `continuation`."""
