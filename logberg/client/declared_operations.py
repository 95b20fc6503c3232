"""The operations about declared state.

Rule: as in `operations`: one method for each public route, and an export is complete.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from logberg.client.asking import Asking
from logberg.client.client_operations import users_of_pages
from logberg.client.paged_lists import all_pages
from logberg.client.request_size import check_apply
from metadata.messages.declared import ApplyReply, ApplyRequest, DeclaredKind, ExportReply

_LISTS: Final = ("topics", "configs", "quotas", "acls")


class DeclaredOperations(Asking):
    """Every method raises ClientError."""

    async def apply(
        self,
        declared: ApplyRequest,
        *,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> ApplyReply:
        """Make the state as declared: completely, or not at all (then items have an `error`).

        A dry run returns the plan. Its `plan`, given as `expected_plan`, lets the controller refuse
        (PLAN_CHANGED) if something else would be done now. BODY_TOO_LARGE: divide the
        declaration.
        """
        body = _given(msgspec.structs.replace(declared, dry_run=dry_run))
        check_apply(body)
        return await self.change(
            "POST",
            "/v1/apply",
            ApplyReply,
            body,
            reason,
            request_id=request_id,
            expect_offset=expect_offset,
        )

    async def export(
        self, kinds: Iterable[DeclaredKind] | None = None, *, assignments: bool = False
    ) -> ExportReply:
        """Return the state as one declares it, at one offset; `kinds`: only these.

        `assignments`: with the brokers of each partition.
        """
        query = {} if kinds is None else {"kinds": ",".join(kinds)}
        if assignments:
            query["assignments"] = "true"
        return await all_pages(self.get, "/v1/export", ExportReply, _joined, query)


def _given(declared: ApplyRequest) -> dict[str, Any]:
    """Return a request without what is empty: a controller limits the values of a request."""
    fields: dict[str, Any] = msgspec.to_builtins(declared)
    for kind in DeclaredKind:
        fields[kind] = [_without_empty(entry) for entry in fields[kind]]
    return _without_empty(fields)


def _without_empty(fields: dict[str, Any]) -> dict[str, Any]:
    return {n: value for n, value in fields.items() if value not in (None, "", False, [], (), {})}


def _joined(pages: list[ExportReply]) -> ExportReply:
    lists = {name: tuple(row for page in pages for row in getattr(page, name)) for name in _LISTS}
    users = users_of_pages(page.users for page in pages)
    return msgspec.structs.replace(pages[0], **lists, users=users, continuation=None)
