"""Changes of partitions: each request, and the decision that it asks for."""

from controller.http.clients.asked import Asked
from controller.leader import resources
from controller.leader.parts import LeaderParts
from controller.leader.requested_change import RequestedChange
from metadata.messages import (
    AlterReassignmentsReply,
    CreatePartitionsReply,
    CreatePartitionsRequest,
)
from metadata.messages.long_lists import LongRequest


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
    long: LongRequest = asked.message
    wanted = long.entries
    alteration = leader.reassignments.alter(long.head, wanted)
    change = RequestedChange.of(
        long.head,
        "AlterPartitionReassignments",
        AlterReassignmentsReply,
        alteration.decide,
        lambda _image: len(wanted) - alteration.rounds.progress[0],
        in_rounds=True,
        concerns=lambda image: resources.partitions(
            ((each.topic, (each.partition,)) for each in wanted), image
        ),
        rounds=alteration.rounds,
    )
    return change._replace(meaning=lambda: long.meaning, complete=alteration.complete)
