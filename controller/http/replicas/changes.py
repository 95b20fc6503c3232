"""Changes of partitions: each request, and the decision that it asks for."""

from controller.http.clients.asked import Asked
from controller.leader import resources
from controller.leader.parts import LeaderParts
from controller.leader.requested_change import RequestedChange
from metadata.messages import (
    AlterReassignmentsReply,
    AlterReassignmentsRequest,
    CreatePartitionsReply,
    CreatePartitionsRequest,
)


def create_partitions(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """Add partitions to topics; what is valid is one change."""
    message: CreatePartitionsRequest = asked.message
    partitions = leader.partitions
    return RequestedChange.of(
        message,
        "CreatePartitions",
        CreatePartitionsReply,
        lambda image: partitions.create(image, message),
        lambda image: partitions.adds(image, message),
    )


def alter_reassignments(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """Start, replace or cancel reassignments, in rounds; a dry run shows all of them at once."""
    message: AlterReassignmentsRequest = asked.message
    alteration = leader.reassignments.alter(message)
    return RequestedChange.of(
        message,
        "AlterPartitionReassignments",
        AlterReassignmentsReply,
        alteration.decide,
        lambda _image: len(message.partitions),
        in_rounds=True,
        concerns=lambda image: resources.partitions(
            ((each.topic, (each.partition,)) for each in message.partitions), image
        ),
        rounds=alteration.rounds,
    )
