"""The operations about clients: who may do what.

Rule: as in `operations`: one method for each public route, and lists are complete.
"""

import msgspec

from logberg.client.asking import Asking
from logberg.client.paged_lists import all_pages
from metadata.messages.acls import (
    AclEntry,
    AclFilter,
    CheckAclReply,
    CreateAclsReply,
    DeleteAclsReply,
    ListAclsReply,
)


class ClientOperations(Asking):
    """Every method raises ClientError."""

    async def create_acls(
        self,
        *acls: AclEntry,
        reason: str = "",
        request_id: str | None = None,
        dry_run: bool = False,
    ) -> CreateAclsReply:
        """Add access control entries as one change. One that is refused has its `error`."""
        body = {"acls": msgspec.to_builtins(acls), "dryRun": dry_run}
        return await self.change(
            "POST", "/v1/acls", CreateAclsReply, body, reason, request_id=request_id
        )

    async def delete_acls(
        self,
        *filters: AclFilter,
        reason: str = "",
        request_id: str | None = None,
        dry_run: bool = False,
    ) -> DeleteAclsReply:
        """Remove the entries that match one of the filters, as one change."""
        body = {"filters": msgspec.to_builtins(filters), "dryRun": dry_run}
        return await self.change(
            "DELETE", "/v1/acls", DeleteAclsReply, body, reason, request_id=request_id
        )

    async def acls(self, wanted: AclFilter | None = None) -> ListAclsReply:
        """Return the access control entries that match, by id."""
        fields = msgspec.to_builtins(wanted or AclFilter())
        query = {name: value for name, value in fields.items() if value is not None}
        return await all_pages(self.get, "/v1/acls", ListAclsReply, _more_acls, query)

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


def _more_acls(pages: list[ListAclsReply]) -> ListAclsReply:
    acls = tuple(acl for page in pages for acl in page.acls)
    return msgspec.structs.replace(pages[0], acls=acls, continuation=None)
