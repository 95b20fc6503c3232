"""Forgets the registration of a controller that will not come back (KIP-1312).

A stale registration keeps feature levels from being raised. Rule: a controller that votes is only
forgotten with `force`, and the active controller never. A controller that still runs registers
itself again.
"""

from collections.abc import Collection

from controller.result import ControllerResult
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages import UnregisterControllerReply
from metadata.records import UnregisterControllerRecord


def unregister_controller(
    image: MetadataImage,
    controller_id: int,
    *,
    active_id: int,
    voters: Collection[int],
    force: bool = False,
) -> ControllerResult:
    """Forget a controller.

    Raises LogbergError: CONTROLLER_ID_NOT_REGISTERED, INVALID_REQUEST for the active controller,
    POLICY_VIOLATION for a voter without `force`.
    """
    if controller_id == active_id:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"controller {controller_id} is active, and can't forget itself: stop it, and ask the "
            "next leader",
        )
    if image.cluster.controllers.get(controller_id) is None:
        raise LogbergError(
            ErrorCode.CONTROLLER_ID_NOT_REGISTERED,
            f"there is no registration of controller {controller_id}",
        )
    if controller_id in voters and not force:
        raise LogbergError(
            ErrorCode.POLICY_VIOLATION,
            f"controller {controller_id} is a voter: remove it from the voters first, or repeat "
            "with force=true (--force). If it runs, it registers itself again",
        )
    return ControllerResult(
        (UnregisterControllerRecord(controller_id),), UnregisterControllerReply(controller_id)
    )
