"""Answers the route of producer ids: for brokers, by their own credentials."""

from controller.http.clients.asked import Asked
from controller.leader.identity import BrokerClaim, acted_as
from controller.leader.parts import LeaderParts
from controller.leader.requested_change import RequestedChange
from controller.managers.clients.producer_ids import allocate
from metadata.messages import AllocateProducerIdsReply
from metadata.messages.wire import canonical


def allocate_producer_ids(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/producer-ids`. Raises LogbergError CLUSTER_AUTHORIZATION_FAILED."""
    message, caller = asked.message, asked.request.caller
    claim = BrokerClaim(message.broker_id, message.broker_epoch, None, None)
    leader.identity.check_claim(caller, claim)
    return RequestedChange(
        operation="AllocateProducerIds",
        meaning=lambda: canonical(message),
        reply_type=AllocateProducerIdsReply,
        decide=lambda image: allocate(image, message),
        dry_run=message.dry_run,
        acted_as=acted_as(caller, message.broker_id),
    )
