"""The operations about access tokens, join tokens and revocations.

Rule: as in `operations`: one method for each public route, and lists are complete. No method takes
or returns a token. `logberg.client.drawn_tokens` draws tokens and hashes them.
"""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from logberg.client.asking import Asking
from logberg.client.paged_lists import all_pages, joining
from metadata.messages.credentials import (
    ChangeAccessTokenReply,
    ChangeJoinTokenReply,
    ChangeRevocationReply,
    JoinReply,
    ListAccessTokensReply,
    ListJoinTokensReply,
    ListRevocationsReply,
)

_ACCESS = "/v1/access-tokens"
_JOIN = "/v1/join-tokens"
_REVOCATIONS = "/v1/revocations"


class CredentialOperations(Asking):
    """Every method raises ClientError."""

    async def create_access_token(
        self,
        principal: str,
        sha256: bytes,
        *,
        name: str = "",
        lifetime_ms: int = -1,
        dry_run: bool = False,
        **how: Any,
    ) -> ChangeAccessTokenReply:
        """Make the access token with this hash. `how`: reason, request_id, expect_offset."""
        body: dict[str, Any] = {"principal": principal, "sha256": _base64(sha256), "name": name}
        body |= {"lifetimeMs": lifetime_ms, "dryRun": dry_run}
        return await self.change("POST", _ACCESS, ChangeAccessTokenReply, body, **how)

    async def rotate_access_token(
        self,
        token_id: str,
        sha256: bytes,
        *,
        lifetime_ms: int = -1,
        overlap_ms: int = 0,
        dry_run: bool = False,
        **how: Any,
    ) -> ChangeAccessTokenReply:
        """Make the token with this hash in place of another one, which ends after `overlap_ms`."""
        body = {"sha256": _base64(sha256), "lifetimeMs": lifetime_ms}
        body |= {"overlapMs": overlap_ms, "dryRun": dry_run}
        path = f"{_ACCESS}/{quote(token_id, safe='')}/rotate"
        return await self.change("POST", path, ChangeAccessTokenReply, body, **how)

    async def revoke_access_token(
        self, token_id: str, *, dry_run: bool = False, **how: Any
    ) -> ChangeAccessTokenReply:
        """End an access token at once."""
        path = f"{_ACCESS}/{quote(token_id, safe='')}/revoke"
        return await self.change("POST", path, ChangeAccessTokenReply, {"dryRun": dry_run}, **how)

    async def access_tokens(self, principal: str | None = None) -> ListAccessTokensReply:
        """Return access tokens by id; `principal`: only this one's."""
        query = {} if principal is None else {"principal": principal}
        return await all_pages(self.get, _ACCESS, ListAccessTokensReply, joining("tokens"), query)

    async def create_join_token(
        self,
        role: str,
        node_id: int,
        sha256: bytes,
        *,
        hosts: Sequence[str] = (),
        lifetime_ms: int = -1,
        dry_run: bool = False,
        **how: Any,
    ) -> ChangeJoinTokenReply:
        """Make the join token with this hash, for one broker or controller."""
        body: dict[str, Any] = {"role": role, "nodeId": node_id, "sha256": _base64(sha256)}
        body |= {"hosts": list(hosts), "lifetimeMs": lifetime_ms, "dryRun": dry_run}
        return await self.change("POST", _JOIN, ChangeJoinTokenReply, body, **how)

    async def revoke_join_token(
        self, token_id: str, *, dry_run: bool = False, **how: Any
    ) -> ChangeJoinTokenReply:
        """End a join token at once."""
        path = f"{_JOIN}/{quote(token_id, safe='')}/revoke"
        return await self.change("POST", path, ChangeJoinTokenReply, {"dryRun": dry_run}, **how)

    async def join_tokens(self) -> ListJoinTokensReply:
        """Return join tokens by id."""
        return await all_pages(self.get, _JOIN, ListJoinTokensReply, joining("tokens"))

    async def join(self, csr: bytes, **how: Any) -> JoinReply:
        """Get a node's certificate. The client's token must be a join token."""
        body = {"csr": _base64(csr)}
        return await self.change("POST", "/v1/join", JoinReply, body, **how)

    async def revoke_certificates(
        self,
        *,
        serial: str | None = None,
        principal: str | None = None,
        before_ms: int = -1,
        dry_run: bool = False,
        **how: Any,
    ) -> ChangeRevocationReply:
        """Refuse one certificate, or those of a principal."""
        body = {"serial": serial, "principal": principal, "beforeMs": before_ms}
        body["dryRun"] = dry_run
        return await self.change("POST", _REVOCATIONS, ChangeRevocationReply, body, **how)

    async def reinstate_certificates(
        self,
        *,
        serial: str | None = None,
        principal: str | None = None,
        dry_run: bool = False,
        **how: Any,
    ) -> ChangeRevocationReply:
        """Take a revocation back."""
        body = {"serial": serial, "principal": principal, "dryRun": dry_run}
        return await self.change("DELETE", _REVOCATIONS, ChangeRevocationReply, body, **how)

    async def revocations(self) -> ListRevocationsReply:
        """Return the revocations."""
        return await all_pages(self.get, _REVOCATIONS, ListRevocationsReply, joining("revocations"))


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
