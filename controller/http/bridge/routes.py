"""The routes of the bridge, a part of the table in `controller.http.routes`."""

from typing import Final

from controller.http.route import READS, Route
from metadata.messages import (
    DescribeBridgeReply,
    FollowSourceReply,
    FollowSourceRequest,
    SetBridgeModeReply,
    SetBridgeModeRequest,
)

BRIDGE_ROUTES: Final = (
    Route(
        "GET",
        "/v1/bridge",
        "describe_bridge",
        "Who leads, this cluster or the source of the bridge, and the source's brokers",
        DescribeBridgeReply,
        None,
        READS,
    ),
    Route(
        "POST",
        "/v1/bridge/follow",
        "follow_source",
        "Bring the cluster to a revision of the source; the first step begins the bridge",
        FollowSourceReply,
        FollowSourceRequest,
        changes=True,
    ),
    Route(
        "POST",
        "/v1/bridge/mode",
        "set_bridge_mode",
        "Let this cluster lead, end the bridge for good, or give it up",
        SetBridgeModeReply,
        SetBridgeModeRequest,
        changes=True,
    ),
)
