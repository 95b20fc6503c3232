"""The operation of an import, in one request or in parts.

Rule: nothing is shown before the end. Parts lie with the active controller, which forgets them; the
import itself is one request, which names the digest of all parts. After a change of leaders the
parts are sent again, and a second try sends only what is missing.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Final

import msgspec

from logberg.client.asking import Asking
from logberg.client.client_errors import ClientError
from logberg.client.request_ids import new_request_id
from metadata.codec import encode_record, encode_records
from metadata.errors import ErrorCode
from metadata.messages.imports import (
    IMPORT_BYTES_MAX,
    IMPORT_WHOLE_BYTES_MAX,
    ImportPartReply,
    ImportPartRequest,
    ImportReply,
    ImportRequest,
)
from metadata.records import Record

_PART_BYTES: Final = IMPORT_BYTES_MAX - 1024
_TRIES: Final = 5
"""So often the parts are sent to a new leader."""
OnPart = Callable[[int, int], None]
"""Gets how many parts are sent, of how many."""


class ImportOperations(Asking):
    """Every method raises ClientError."""

    async def import_records(
        self,
        records: Sequence[Record],
        source: str,
        revision: int,
        *,
        tokens_above: int | None = None,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
        on_part: OnPart = lambda _sent, _of: None,
    ) -> ImportReply:
        """Write what another store held: what is missing here, or nothing and the conflicts.

        `tokens_above`: later fencing tokens are larger. More than 3 MiB of records go in parts, and
        are one change all the same. BODY_TOO_LARGE for more than 32 MiB.
        """
        parts = cut_in_parts(records)
        last, digest = parts[-1], None
        if len(parts) > 1:
            digest = sha256(b"".join(sha256(part).digest() for part in parts)).hexdigest()
            last = encode_records(())
        request = ImportRequest(
            last, source, revision, tokens_above, len(parts) if digest else 0, digest, dry_run
        )
        chosen = request_id or new_request_id(self._random)
        for tries_left in reversed(range(_TRIES)):
            if digest is not None:
                await self._send_parts(digest, parts, on_part)
            try:
                return await self.change(
                    "POST",
                    "/v1/import",
                    ImportReply,
                    _fields(request),
                    reason,
                    request_id=chosen,
                    expect_offset=expect_offset,
                )
            except ClientError as error:
                if error.code != ErrorCode.IMPORT_INCOMPLETE or not tries_left:
                    raise
        raise AssertionError("the last try returns or raises")

    async def _send_parts(self, digest: str, parts: Sequence[bytes], on_part: OnPart) -> None:
        """Send the parts that the active controller lacks."""
        kept: tuple[int, ...] = ()
        for number, part in enumerate(parts):
            if number not in kept:
                body = msgspec.json.encode(ImportPartRequest(digest, number, part))
                reply = await self._call("POST", "/v1/import/parts", ImportPartReply, body, {}, {})
                kept = reply.kept
            on_part(number + 1, len(parts))


def cut_in_parts(records: Sequence[Record]) -> list[bytes]:
    """Encode records as arrays of at most 3 MiB. Raises ClientError BODY_TOO_LARGE."""
    encoded = encode_records(records)
    if len(encoded) <= IMPORT_BYTES_MAX:
        return [encoded]
    if len(encoded) > IMPORT_WHOLE_BYTES_MAX:
        raise ClientError(
            ErrorCode.BODY_TOO_LARGE.value,
            f"an import is one change, and takes at most {IMPORT_WHOLE_BYTES_MAX:,} bytes of "
            f"records; here are {len(encoded):,}",
        )
    parts: list[bytes] = []
    held: list[Record] = []
    size = 0
    for record in records:
        more = len(encode_record(record))
        if held and size + more > _PART_BYTES:
            parts.append(encode_records(held))
            held, size = [], 0
        held.append(record)
        size += more
    return [*parts, encode_records(held)]


def _fields(request: ImportRequest) -> dict[str, object]:
    """Return the request without what is as it is by default: older controllers refuse it."""
    fields: dict[str, object] = msgspec.to_builtins(request)
    new = {"tokensAbove": None, "parts": 0, "digest": None}
    return {name: value for name, value in fields.items() if value != new.get(name, ...)}
