"""Decides changes of the voters, one voter at a time (KIP-853, ADR 0081).

Rule: the quorum judges whether a set may follow the one in force; here its answer becomes the
caller's. The records say what the quorum's entry says. A voter that is there already, with the same
folder, is added without a record, so whoever is not sure of an answer may ask again.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from controller.managers.voter_addresses import with_addresses
from controller.result import ControllerResult
from metadata.errors import ErrorCode, LogbergError
from metadata.features import LOGBERG_VERSION, VOTER_CHANGES_FROM
from metadata.image import MetadataImage
from metadata.messages import ChangeVotersReply, ChangeVotersRequest, VoterAction, VoterDescription
from metadata.records import VotersRecord
from metadata.uuids import parse_uuid_of, uuid_text
from metadata.voter_records import voter_record
from quorum.api import Voter, VoterChangeRefusedError, VoterSet


class ChangingQuorum(Protocol):
    """What a decision asks of the quorum."""

    def voter_set(self) -> VoterSet:
        """Return the voters in force."""
        ...

    def candidate(self, node_id: int) -> Voter | None:
        """Return a linked node as it would vote."""
        ...

    def refusal_of(self, voters: Sequence[Voter]) -> VoterChangeRefusedError | None:
        """Return why these voters can't follow."""
        ...


class VoterManager:
    """Adds and removes voters."""

    def __init__(self, quorum: ChangingQuorum) -> None:
        self._quorum = quorum

    def change(self, image: MetadataImage, request: ChangeVotersRequest) -> ControllerResult:
        """Add or remove one voter.

        Raises LogbergError: UNSUPPORTED_VERSION below the level of such changes, INVALID_REQUEST
        for a set that can't follow, VOTERS_NOT_READY for one that may follow later.
        """
        level = image.features.levels.get(LOGBERG_VERSION, 0)
        if level < VOTER_CHANGES_FROM:
            raise LogbergError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the voters can be changed from {LOGBERG_VERSION} {VOTER_CHANGES_FROM} on, and it "
                f"is {level}: when all nodes run this release, raise it with `logberg features "
                f"upgrade {LOGBERG_VERSION}={VOTER_CHANGES_FROM}`",
            )
        before = self._quorum.voter_set().voters
        if request.action is VoterAction.ADD:
            after = self._added(before, request)
        else:
            after = _removed(before, request)
        named = sorted(map(_named, after), key=lambda voter: voter.node_id)
        reply = ChangeVotersReply(tuple(named))
        if after == before:
            return ControllerResult((), reply)
        refusal = self._quorum.refusal_of(after)
        if refusal is not None:
            code = ErrorCode.VOTERS_NOT_READY if refusal.later else ErrorCode.INVALID_REQUEST
            raise LogbergError(code, str(refusal))
        return set_voters(image, after)._replace(reply=reply, voters=after)

    def _added(self, before: tuple[Voter, ...], request: ChangeVotersRequest) -> tuple[Voter, ...]:
        node_id, directory_id = request.node_id, _directory(request)
        present = next((voter for voter in before if voter.node_id == node_id), None)
        linked = self._quorum.candidate(node_id)
        if present is not None:
            wanted = directory_id or (present if linked is None else linked).directory_id
            if wanted == present.directory_id:
                return before
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                f"node {node_id} votes with directory {uuid_text(present.directory_id)}: remove "
                "that one first, or give `logberg quorum replace` the node",
            )
        if linked is None:
            raise LogbergError(
                ErrorCode.VOTERS_NOT_READY,
                f"node {node_id} is not linked: start it with this cluster's id and controllers, "
                "and see that it reaches the leader",
            )
        if directory_id and directory_id != linked.directory_id:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                f"node {node_id} runs on directory {uuid_text(linked.directory_id)}, not on "
                f"{uuid_text(directory_id)}",
            )
        host, port = (request.host, request.port) if request.host else (linked.host, linked.port)
        if not host or not port:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                f"no address of node {node_id} is known: name where it listens for controllers "
                "(host and port; --listens HOST:PORT)",
            )
        return (*before, Voter(node_id, linked.directory_id, host, port))


def _removed(before: tuple[Voter, ...], request: ChangeVotersRequest) -> tuple[Voter, ...]:
    node_id, directory_id = request.node_id, _directory(request)
    present = next((voter for voter in before if voter.node_id == node_id), None)
    if present is None or directory_id not in (b"", present.directory_id):
        votes = ", ".join(f"{v.node_id} ({uuid_text(v.directory_id)})" for v in before)
        what = f" with directory {uuid_text(directory_id)}" if directory_id else ""
        raise LogbergError(
            ErrorCode.INVALID_REQUEST, f"node {node_id}{what} is no voter; voters are {votes}"
        )
    if len(before) == 1:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"node {node_id} is the last voter, and without one nothing can be written",
        )
    return tuple(voter for voter in before if voter is not present)


def _directory(request: ChangeVotersRequest) -> bytes:
    """Return the directory that a request names; empty: none. Raises LogbergError."""
    named = request.directory_id
    return parse_uuid_of("directoryId", named) if named else b""


def _named(voter: Voter) -> VoterDescription:
    return VoterDescription(voter.node_id, uuid_text(voter.directory_id), voter.host, voter.port)


def differs(image: MetadataImage, voters: Iterable[Voter]) -> bool:
    """Return whether the log names others than these. Addresses are not compared."""
    if image.features.levels.get(LOGBERG_VERSION, 0) < VOTER_CHANGES_FROM:
        return False
    named = {(voter.voter_id, voter.voter_directory_id) for voter in image.quorum.voters}
    return named != {(voter.node_id, voter.directory_id) for voter in voters}


def set_voters(image: MetadataImage, voters: Iterable[Voter]) -> ControllerResult:
    """Write these voters. Whoever is in the log keeps what the log says of it."""
    known = {(voter.voter_id, voter.voter_directory_id): voter for voter in image.quorum.voters}
    ordered = sorted(voters, key=lambda voter: (voter.node_id, voter.directory_id))
    named = [
        known.get((v.node_id, v.directory_id))
        or voter_record(v.node_id, v.directory_id, v.host, v.port)
        for v in ordered
    ]
    return ControllerResult(
        (VotersRecord(with_addresses(image, named)),), reason="who votes has changed"
    )
