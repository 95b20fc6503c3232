"""The operations about clients: who may do what, how much, and how a client proves who it is.

Rule: as in `operations`: one method for each public route, and lists are complete.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from logberg.client.asking import Asking
from logberg.client.paged_lists import all_pages, joining
from metadata.messages.acls import (
    AclEntry,
    AclFilter,
    CheckAclReply,
    CreateAclsReply,
    DeleteAclsReply,
    ListAclsReply,
)
from metadata.messages.producer_ids import AllocateProducerIdsReply
from metadata.messages.quorum import (
    ChangeVotersReply,
    TransferLeadershipReply,
    UnregisterControllerReply,
    VoterAction,
)
from metadata.messages.quotas import (
    AlterQuotasReply,
    ListQuotasReply,
    QuotaAlteration,
    ResolveQuotasReply,
)
from metadata.messages.scram import (
    AlterScramReply,
    DescribeUserReply,
    ListUsersReply,
    ScramDeletion,
    ScramUpsertion,
    UserDescription,
)
from metadata.messages.tokens import (
    ChangeTokenReply,
    CreateTokenReply,
    ListTokensReply,
)
from metadata.messages.transparency import ChangeHeadKeyReply, ListHeadKeysReply


class ClientOperations(Asking):
    """Every method raises ClientError."""

    async def create_acls(
        self,
        *acls: AclEntry,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> CreateAclsReply:
        """Add access control entries as one change. One that is refused has its `error`."""
        body = {"acls": msgspec.to_builtins(acls), "dryRun": dry_run}
        return await self.change(
            "POST",
            "/v1/acls",
            CreateAclsReply,
            body,
            reason,
            request_id=request_id,
            expect_offset=expect_offset,
        )

    async def delete_acls(
        self,
        *filters: AclFilter,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> DeleteAclsReply:
        """Remove the entries that match one of the filters, as one change."""
        body = {"filters": msgspec.to_builtins(filters), "dryRun": dry_run}
        return await self.change(
            "DELETE",
            "/v1/acls",
            DeleteAclsReply,
            body,
            reason,
            request_id=request_id,
            expect_offset=expect_offset,
        )

    async def acls(self, wanted: AclFilter | None = None) -> ListAclsReply:
        """Return the access control entries that match, by id."""
        fields = msgspec.to_builtins(wanted or AclFilter())
        query = {name: value for name, value in fields.items() if value is not None}
        return await all_pages(self.get, "/v1/acls", ListAclsReply, joining("acls"), query)

    async def check_acl(
        self,
        principal: str,
        operation: str,
        resource_type: str,
        resource_name: str,
        *,
        host: str = "*",
    ) -> CheckAclReply:
        """Return whether the principal may do it, and which entry decides."""
        query = {
            "principal": principal,
            "operation": operation,
            "resourceType": resource_type,
            "resourceName": resource_name,
            "host": host,
        }
        return await self.get("/v1/acls/check", CheckAclReply, query)

    async def alter_quotas(
        self,
        *entries: QuotaAlteration,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> AlterQuotasReply:
        """Set and remove client quotas as one change. An entity that is refused has its `error`."""
        body = {"entries": msgspec.to_builtins(entries), "dryRun": dry_run}
        return await self.change(
            "POST",
            "/v1/quotas",
            AlterQuotasReply,
            body,
            reason,
            request_id=request_id,
            expect_offset=expect_offset,
        )

    async def quotas(self, query: Mapping[str, str] | None = None) -> ListQuotasReply:
        """Return the entities with quotas that match; `query` is that of `GET /v1/quotas`."""
        return await all_pages(self.get, "/v1/quotas", ListQuotasReply, joining("entries"), query)

    async def resolve_quotas(
        self, *, user: str | None = None, client_id: str | None = None, ip: str | None = None
    ) -> ResolveQuotasReply:
        """Return the quotas that apply to a client, and whose they are."""
        given = {"user": user, "clientId": client_id, "ip": ip}
        query = {name: value for name, value in given.items() if value is not None}
        return await self.get("/v1/quotas/resolve", ResolveQuotasReply, query)

    async def alter_scram(
        self,
        upsertions: Sequence[ScramUpsertion] = (),
        deletions: Sequence[ScramDeletion] = (),
        *,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> AlterScramReply:
        """Set and remove SCRAM credentials. A user that is refused has its `error`."""
        body = {
            "upsertions": msgspec.to_builtins(upsertions),
            "deletions": msgspec.to_builtins(deletions),
            "dryRun": dry_run,
        }
        return await self.change(
            "POST",
            "/v1/users/scram",
            AlterScramReply,
            body,
            reason,
            request_id=request_id,
            expect_offset=expect_offset,
        )

    async def users(self) -> ListUsersReply:
        """Return the users that have SCRAM credentials, by name; no secret is shown."""
        return await all_pages(self.get, "/v1/users", ListUsersReply, _more_users)

    async def user(self, name: str) -> DescribeUserReply:
        """Return one user's SCRAM credentials; no secret is shown."""
        return await self.get(f"/v1/users/{quote(name, safe='')}", DescribeUserReply)

    async def create_token(
        self,
        *,
        owner: str | None = None,
        renewers: Sequence[str] = (),
        max_lifetime_ms: int = -1,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> CreateTokenReply:
        """Make a delegation token. Only this answer has its `hmac`."""
        body = {
            "owner": owner,
            "renewers": list(renewers),
            "maxLifetimeMs": max_lifetime_ms,
            "dryRun": dry_run,
        }
        return await self.change(
            "POST",
            "/v1/tokens",
            CreateTokenReply,
            body,
            reason,
            request_id=request_id,
            expect_offset=expect_offset,
        )

    async def renew_token(
        self,
        token_id: str,
        hmac: bytes,
        *,
        period_ms: int = -1,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> ChangeTokenReply:
        """Let a delegation token live longer; -1: for the controllers' own period."""
        body = {"renewPeriodMs": period_ms, "hmac": _base64(hmac), "dryRun": dry_run}
        return await self._change_token(token_id, "renew", body, reason, request_id, expect_offset)

    async def expire_token(
        self,
        token_id: str,
        hmac: bytes,
        *,
        period_ms: int = -1,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> ChangeTokenReply:
        """Let a delegation token end in `period_ms`; -1: at once."""
        body = {"expiryTimePeriodMs": period_ms, "hmac": _base64(hmac), "dryRun": dry_run}
        return await self._change_token(token_id, "expire", body, reason, request_id, expect_offset)

    async def _change_token(
        self,
        token_id: str,
        action: str,
        body: dict[str, Any],
        reason: str,
        request_id: str | None,
        expect_offset: int | None,
    ) -> ChangeTokenReply:
        path = f"/v1/tokens/{quote(token_id, safe='')}/{action}"
        return await self.change(
            "POST",
            path,
            ChangeTokenReply,
            body,
            reason,
            request_id=request_id,
            expect_offset=expect_offset,
        )

    async def tokens(self, owner: str | None = None) -> ListTokensReply:
        """Return delegation tokens by id, without their HMACs; `owner`: only this principal's."""
        query = {} if owner is None else {"owner": owner}
        return await all_pages(self.get, "/v1/tokens", ListTokensReply, joining("tokens"), query)

    async def allocate_producer_ids(
        self,
        broker_id: int,
        broker_epoch: int,
        *,
        request_id: str | None = None,
        expect_offset: int | None = None,
    ) -> AllocateProducerIdsReply:
        """Hand out the next block of producer ids to a broker's current process."""
        body = {"brokerId": broker_id, "brokerEpoch": broker_epoch}
        return await self.change(
            "POST",
            "/v1/producer-ids",
            AllocateProducerIdsReply,
            body,
            request_id=request_id,
            expect_offset=expect_offset,
        )

    async def change_voters(
        self,
        action: VoterAction,
        node_id: int,
        directory_id: str = "",
        address: tuple[str, int] = ("", 0),
        *,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> ChangeVotersReply:
        """Add one voter to the quorum, remove one, or say where one listens from now on.

        `directory_id`: of the folder that votes; empty: the one that the node has. `address`: host
        and port at which the voter listens for controllers. A new one needs none if the leader's
        configuration has it.
        """
        host, port = address
        body = {"action": action, "nodeId": node_id, "directoryId": directory_id}
        body |= {"host": host, "port": port, "dryRun": dry_run}
        return await self.change(
            "POST",
            "/v1/quorum/voters",
            ChangeVotersReply,
            body,
            reason,
            request_id=request_id,
            expect_offset=expect_offset,
        )

    async def head_keys(self) -> ListHeadKeysReply:
        """Return the keys that sign heads, as the log names them."""
        return await self.get("/v1/quorum/head-keys", ListHeadKeysReply)

    async def change_head_key(
        self,
        node_id: int,
        public_key: str = "",
        *,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> ChangeHeadKeyReply:
        """Ask a controller to draw another key for heads, or name its key.

        `public_key`: the line of its head.pub, if the key before is lost. Then the log keeps the
        reason, which must not be empty.
        """
        body = {"nodeId": node_id, "publicKey": public_key, "dryRun": dry_run}
        return await self.change(
            "POST",
            "/v1/quorum/head-keys",
            ChangeHeadKeyReply,
            body,
            reason,
            request_id=request_id,
            expect_offset=expect_offset,
        )

    async def transfer_leadership(
        self, node_id: int, *, reason: str = ""
    ) -> TransferLeadershipReply:
        """Let another voter lead. The answer comes when the leader begins to hand over.

        The log keeps who asked, and the reason.
        """
        body = {"nodeId": node_id}
        return await self.change(
            "POST", "/v1/quorum/transfer", TransferLeadershipReply, body, reason
        )

    async def unregister_controller(
        self,
        controller_id: int,
        *,
        force: bool = False,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> UnregisterControllerReply:
        """Forget a controller's registration; `force`: also that of a voter."""
        flags = {"dryRun": dry_run, "force": force}
        return await self.change(
            "DELETE",
            f"/v1/controllers/{controller_id}",
            UnregisterControllerReply,
            None,
            reason,
            request_id=request_id,
            expect_offset=expect_offset,
            query={name: "true" for name, given in flags.items() if given},
        )


def _more_users(pages: list[ListUsersReply]) -> ListUsersReply:
    users = users_of_pages(page.users for page in pages)
    return msgspec.structs.replace(pages[0], users=users, continuation=None)


def users_of_pages(pages: Iterable[Sequence[UserDescription]]) -> tuple[UserDescription, ...]:
    """Join the users of pages. One user's credentials may lie on two of them."""
    users: dict[str, UserDescription] = {}
    for page in pages:
        for user in page:
            before = users.get(user.name)
            credentials = (*(before.credentials if before else ()), *user.credentials)
            users[user.name] = UserDescription(user.name, credentials)
    return tuple(users.values())


def _base64(secret: bytes) -> str:
    return b64encode(secret).decode()
