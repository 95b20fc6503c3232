"""Answers the routes of the bridge."""

from collections.abc import Mapping
from typing import Final

import msgspec

from controller.http.clients.asked import Asked, MakeChange, Read, ReadContext
from controller.http.describe import readable_offset
from controller.http.node_view import View
from controller.leader.parts import LeaderParts
from controller.leader.requested_change import RequestedChange
from controller.managers.bridge.bridging import mode_name
from metadata.messages import (
    DescribeBridgeReply,
    FollowSourceReply,
    FollowSourceRequest,
    LegacyBrokerDescription,
    SetBridgeModeReply,
    SetBridgeModeRequest,
)
from metadata.messages.parts import LongMessage
from metadata.messages.wire import canonical


def follow_source(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/bridge/follow`. One transaction, however large it is."""
    message: FollowSourceRequest = asked.message
    bridge = leader.bridge
    principal = leader.changes.asks_for(asked.request)
    return RequestedChange(
        operation="FollowSource",
        meaning=lambda: bridge.meaning(message),
        reply_type=FollowSourceReply,
        decide=lambda image: bridge.follow(image, message, principal),
        dry_run=message.dry_run,
    )


def set_bridge_mode(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/bridge/mode`."""
    message: SetBridgeModeRequest = asked.message
    principal = leader.changes.asks_for(asked.request)
    return RequestedChange(
        operation="SetBridgeMode",
        meaning=lambda: canonical(message),
        reply_type=SetBridgeModeReply,
        decide=lambda image: leader.bridge.set_mode(image, message, principal),
        dry_run=message.dry_run,
    )


def describe_bridge(
    view: View, _asked: Asked, _context: ReadContext
) -> msgspec.Struct | LongMessage:
    """`GET /v1/bridge`."""
    bridge, state = view.image.bridge, view.image.bridge.state
    offset = readable_offset(view.image)
    if state is None:
        return DescribeBridgeReply(offset, "none")
    return DescribeBridgeReply(
        offset,
        mode_name(state.mode),
        state.source,
        state.source_cluster_id,
        state.revision,
        state.claim_epoch,
        state.since_ms,
        state.begun_by,
        tuple(
            LegacyBrokerDescription(each.broker_id, each.epoch, each.endpoints, each.rack)
            for _, each in sorted(bridge.legacy_brokers.items())
        ),
    )


CHANGES: Final[Mapping[str, MakeChange]] = {
    "follow_source": follow_source,
    "set_bridge_mode": set_bridge_mode,
}
READS: Final[Mapping[str, Read]] = {"describe_bridge": describe_bridge}
