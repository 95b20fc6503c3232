"""Answers `POST /v1/import`."""

from collections.abc import Mapping, Sequence
from typing import Final

from controller.http.clients.asked import Asked, MakeChange
from controller.leader.parts import LeaderParts
from controller.leader.requested_change import RequestedChange
from metadata.messages import ImportReply, ImportRequest


def import_records(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/import`. One transaction, however large it is, with the parts that were kept."""
    message: ImportRequest = asked.message
    imports, parts = leader.imports, leader.import_parts
    principal = leader.changes.asks_for(asked.request)

    def records() -> Sequence[bytes]:
        kept = parts.whole(principal, message.digest or "", message.parts) if message.parts else ()
        return (*kept, message.records)

    return RequestedChange(
        operation="Import",
        meaning=lambda: imports.meaning(message),
        reply_type=ImportReply,
        decide=lambda image: imports.decide(image, message, records()),
        mutations=lambda image: imports.touches(image, records()),
        dry_run=message.dry_run,
    )


CHANGES: Final[Mapping[str, MakeChange]] = {"import_records": import_records}
