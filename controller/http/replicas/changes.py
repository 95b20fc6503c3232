"""Changes of partitions: each request, and the decision that it asks for."""

from controller.http.clients.asked import Asked
from controller.leader.changes import RequestedChange
from controller.leader.parts import LeaderParts
from metadata.messages import (
    AlterReassignmentsReply,
    AlterReassignmentsRequest,
    CreatePartitionsReply,
    CreatePartitionsRequest,
)
from metadata.messages.wire import canonical


def create_partitions(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """Add partitions to topics; what is valid is one change."""
    message: CreatePartitionsRequest = asked.message
    partitions = leader.partitions
    return RequestedChange(
        operation="CreatePartitions",
        meaning=lambda: canonical(message),
        reply_type=CreatePartitionsReply,
        decide=lambda image: partitions.create(image, message),
        mutations=lambda image: partitions.adds(image, message),
        dry_run=message.dry_run,
    )


def alter_reassignments(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """Start, replace or cancel reassignments, in rounds; a dry run shows all of them at once."""
    message: AlterReassignmentsRequest = asked.message
    return RequestedChange(
        operation="AlterPartitionReassignments",
        meaning=lambda: canonical(message),
        reply_type=AlterReassignmentsReply,
        decide=leader.reassignments.alter(message),
        in_rounds=not message.dry_run,
        mutations=lambda _image: len(message.partitions),
        dry_run=message.dry_run,
    )
