"""Answers `POST /v1/import`."""

from collections.abc import Mapping
from typing import Final

from controller.http.clients.asked import Asked, MakeChange
from controller.leader.parts import LeaderParts
from controller.leader.requested_change import RequestedChange
from metadata.messages import ImportReply, ImportRequest


def import_records(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/import`. One transaction, however large it is."""
    message: ImportRequest = asked.message
    imports = leader.imports
    return RequestedChange(
        operation="Import",
        meaning=lambda: imports.meaning(message),
        reply_type=ImportReply,
        decide=lambda image: imports.decide(image, message),
        mutations=lambda image: imports.touches(image, message),
        dry_run=message.dry_run,
    )


CHANGES: Final[Mapping[str, MakeChange]] = {"import_records": import_records}
