"""Answers the routes about the keys that sign heads."""

from collections.abc import Mapping
from typing import Final

import msgspec

from controller.http.clients.asked import Asked, MakeChange, Read, ReadContext
from controller.http.describe import readable_offset
from controller.http.node_view import View
from controller.leader.changes import REASON
from controller.leader.parts import LeaderParts
from controller.leader.requested_change import RequestedChange
from controller.managers.head_keys import change_key, key_of
from ledger.merkle.heads import origin_of
from ledger.merkle.notes import NoteKey
from metadata.messages import (
    ChangeHeadKeyReply,
    ChangeHeadKeyRequest,
    HeadKeyDescription,
    ListHeadKeysReply,
)
from metadata.messages.parts import LongMessage
from metadata.records import HeadKeyCause
from metadata.uuids import uuid_text


def change_head_key(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/quorum/head-keys`."""
    message: ChangeHeadKeyRequest = asked.message
    reasoned = bool(asked.request.headers.get(REASON, "").strip())
    return RequestedChange.of(
        message,
        "ChangeHeadKey",
        ChangeHeadKeyReply,
        lambda image: change_key(image, leader.cluster_id, message, reasoned=reasoned),
        concerns=lambda _image: (("head-key", message.node_id),),
    )


def list_head_keys(view: View, _asked: Asked, context: ReadContext) -> msgspec.Struct | LongMessage:
    """`GET /v1/quorum/head-keys`."""
    image, origin = view.image, origin_of(context.config.cluster_id)
    newest = image.heads.newest
    keys = tuple(
        HeadKeyDescription(
            node_id,
            uuid_text(key.directory_id),
            NoteKey(origin, key.public_key).text,
            HeadKeyCause(key.cause).name.lower(),
        )
        for node_id, key in sorted(image.heads.keys.items())
        if key_of(image, node_id) is not None
    )
    if newest is None:
        return ListHeadKeysReply(readable_offset(image), keys)
    signed_by = tuple(each.controller_id for each in newest.signatures)
    return ListHeadKeysReply(readable_offset(image), keys, newest.size, newest.root, signed_by)


CHANGES: Final[Mapping[str, MakeChange]] = {"change_head_key": change_head_key}
READS: Final[Mapping[str, Read]] = {"list_head_keys": list_head_keys}
