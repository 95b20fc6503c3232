"""Where the controllers listen for Kafka, in the voters' record of the log (KIP-853, ADR 0071).

Rule: the record says what the controllers' registrations say. Only the addresses change: who votes
is not decided here, and no other part of a voter is touched. A registration that has an endpoint
named `HTTP` is of a controller with a Kafka listener; its other endpoints are those for Kafka.
Other registrations name the HTTP address `CONTROLLER`, as release 0.1 does, and say nothing for
Kafka.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from controller.result import ControllerResult
from metadata.image import MetadataImage
from metadata.records import RegisterControllerRecord, Voter, VoterEndpoint, VotersRecord

HTTP: Final = "HTTP"
_QUORUM: Final = "QUORUM"
"""The endpoint of the quorum itself, which the first leader writes."""


def listens_for_kafka(registration: RegisterControllerRecord) -> bool:
    """Return whether a controller has a Kafka listener."""
    return any(point.name == HTTP for point in registration.end_points)


def addressed_voters(image: MetadataImage) -> tuple[Voter, ...]:
    """Return the voters of the log with the addresses that the controllers registered."""
    return with_addresses(image, image.quorum.voters)


def with_addresses(image: MetadataImage, voters: Iterable[Voter]) -> tuple[Voter, ...]:
    """Return these voters with the addresses that the controllers registered."""
    return tuple(
        _addressed(voter, image.cluster.controllers.get(voter.voter_id)) for voter in voters
    )


def set_voter_addresses(image: MetadataImage) -> ControllerResult:
    """Write the voters with their new addresses. No record if the log has them already."""
    voters = addressed_voters(image)
    if voters == image.quorum.voters:
        return ControllerResult(())
    return ControllerResult((VotersRecord(voters),), reason="where controllers listen for Kafka")


def _addressed(voter: Voter, registration: RegisterControllerRecord | None) -> Voter:
    if registration is None:
        return voter
    kafkas = tuple(
        VoterEndpoint(point.name, point.host, point.port)
        for point in (registration.end_points if listens_for_kafka(registration) else ())
        if point.name != HTTP
    )
    own = tuple(point for point in voter.endpoints if point.name == _QUORUM)
    return msgspec.structs.replace(voter, endpoints=own + kafkas)
