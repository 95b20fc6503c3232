"""Answers the routes about controllers: who votes, and whose registration is forgotten."""

from controller.http.clients.asked import Asked
from controller.http.queries import broker_id_of, yes_or_no
from controller.leader.parts import LeaderParts
from controller.leader.requested_change import RequestedChange, with_force
from controller.managers.controllers import unregister_controller
from metadata.messages import (
    ChangeVotersReply,
    ChangeVotersRequest,
    UnregisterControllerReply,
)


def change_voters(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/quorum/voters`."""
    message: ChangeVotersRequest = asked.message
    return RequestedChange.of(
        message,
        "ChangeVoters",
        ChangeVotersReply,
        lambda image: leader.voter_manager.change(image, message),
        concerns=lambda _image: (("voters",),),
    )


def unregister(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`DELETE /v1/controllers/{id}`. Raises LogbergError."""
    query = asked.request.query
    controller_id = broker_id_of(asked.arguments["id"])
    dry_run, force = yes_or_no(query, "dryRun"), yes_or_no(query, "force")
    return RequestedChange(
        operation="UnregisterController",
        meaning=lambda: with_force(force=force),
        reply_type=UnregisterControllerReply,
        decide=lambda image: unregister_controller(
            image,
            controller_id,
            active_id=leader.node_id,
            voters={voter.node_id for voter in leader.voters()},
            force=force,
        ),
        dry_run=dry_run,
    )
