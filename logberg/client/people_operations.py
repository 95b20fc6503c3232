"""The operations about people in the log: their pseudonyms, and their erasure (ADR 0093).

Rule: as in `operations`: one method for each public route, and lists are complete.
"""

from collections.abc import Sequence

from logberg.client.asking import Asking
from logberg.client.paged_lists import all_pages, joining
from metadata.messages.erasure import EraseReply, ListPseudonymsReply


class PeopleOperations(Asking):
    """Every method raises ClientError."""

    async def erase(
        self,
        subject: str,
        *,
        earlier: Sequence[str] = (),
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> EraseReply:
        """Destroy the key of a subject such as user:alice, on every controller, for good.

        `earlier`: see `EraseRequest`.
        """
        return await self.change(
            "POST",
            "/v1/erasures",
            EraseReply,
            {
                "subject": subject,
                "dryRun": dry_run,
                **({"earlier": list(earlier)} if earlier else {}),
            },
            reason,
            request_id=request_id,
            expect_offset=expect_offset,
        )

    async def pseudonyms(
        self, *, name: str | None = None, pseudonym: str | None = None
    ) -> ListPseudonymsReply:
        """Return pseudonyms of people, with the names that the controller can open.

        `name`, `pseudonym`: only this one's.
        """
        given = {"name": name, "pseudonym": pseudonym}
        query = {field: value for field, value in given.items() if value is not None}
        path = "/v1/pseudonyms"
        return await all_pages(self.get, path, ListPseudonymsReply, joining("people"), query)
