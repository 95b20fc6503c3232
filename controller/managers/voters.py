"""Decides changes of the voters, and of where they listen, one at a time (KIP-853, ADR 0081).

Rule: the quorum judges whether a set may follow the one in force; here its answer becomes the
caller's. The records say what the quorum's entry says. A voter that is there already, with the same
folder, is added without a record, and so is the move of one that is there: whoever is not sure of
an answer may ask again.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from controller.managers.voter_addresses import with_addresses
from controller.result import ControllerResult
from metadata.errors import ErrorCode, LogbergError
from metadata.features import LOGBERG_VERSION, VOTER_CHANGES_FROM
from metadata.image import MetadataImage
from metadata.messages import ChangeVotersReply, ChangeVotersRequest, VoterAction, VoterDescription
from metadata.records import VotersRecord
from metadata.uuids import parse_uuid_of, uuid_text
from metadata.voter_records import listening_at, voter_record
from quorum.api import Voter, VoterChangeRefusedError, VoterSet

_HOST: Final = re.compile(r"[A-Za-z0-9:._%-]{0,255}")
_LABEL_MAX: Final = 64


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
    """Adds, removes and moves voters."""

    def __init__(self, quorum: ChangingQuorum, standing: frozenset[int] = frozenset()) -> None:
        """`standing`: the standing observers. Each is promoted, and not added by mistake."""
        self._quorum = quorum
        self._standing = standing

    def change(self, image: MetadataImage, request: ChangeVotersRequest) -> ControllerResult:
        """Add, remove or move one voter.

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
        if request.action in (VoterAction.ADD, VoterAction.PROMOTE):
            after = self._added(before, request)
        elif request.action is VoterAction.MOVE:
            after = _moved(before, request)
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
        if request.action is VoterAction.ADD and node_id in self._standing:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                f"node {node_id} is a standing observer (role in the leader's file): `logberg "
                f"quorum promote {node_id}` lets it vote",
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
        _check_host(request.host)
        host, port = (request.host, request.port) if request.host else (linked.host, linked.port)
        if not host or not port:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                f"no address of node {node_id} is known: name where it listens for controllers "
                "(host and port; --listens HOST:PORT)",
            )
        return (*before, Voter(node_id, linked.directory_id, host, port))


def _removed(before: tuple[Voter, ...], request: ChangeVotersRequest) -> tuple[Voter, ...]:
    present = _present(before, request)
    if len(before) == 1:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"node {present.node_id} is the last voter, and without one nothing can be written",
        )
    return tuple(voter for voter in before if voter is not present)


def _moved(before: tuple[Voter, ...], request: ChangeVotersRequest) -> tuple[Voter, ...]:
    _check_host(request.host)
    present, (host, port) = _present(before, request), (request.host, request.port)
    if not host or not port:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"name where node {present.node_id} will listen for controllers: host and port",
        )
    other = next((v for v in before if v is not present and (v.host, v.port) == (host, port)), None)
    if other is not None:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"node {other.node_id} listens at {host}:{port}: give node {present.node_id} an "
            "address of its own",
        )
    new = Voter(present.node_id, present.directory_id, host, port)
    return tuple(new if voter is present else voter for voter in before)


def _present(before: tuple[Voter, ...], request: ChangeVotersRequest) -> Voter:
    """Return the voter that a request is about. Raises LogbergError."""
    node_id, directory_id = request.node_id, _directory(request)
    present = next((voter for voter in before if voter.node_id == node_id), None)
    if present is None or directory_id not in (b"", present.directory_id):
        votes = ", ".join(f"{v.node_id} ({uuid_text(v.directory_id)})" for v in before)
        what = f" with directory {uuid_text(directory_id)}" if directory_id else ""
        raise LogbergError(
            ErrorCode.INVALID_REQUEST, f"node {node_id}{what} is no voter; voters are {votes}"
        )
    return present


def _check_host(host: str) -> None:
    """Raise LogbergError for what can be no name and no address. Every controller would dial it."""
    labels = host.removesuffix(".").split(".") if host and ":" not in host else ["a"]
    if not _HOST.fullmatch(host) or any(not 0 < len(label) < _LABEL_MAX for label in labels):
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"host {host!r} is no name and no address: write one that the other controllers reach",
        )


def _directory(request: ChangeVotersRequest) -> bytes:
    """Return the directory that a request names; empty: none. Raises LogbergError."""
    named = request.directory_id
    return parse_uuid_of("directoryId", named) if named else b""


def _named(voter: Voter) -> VoterDescription:
    return VoterDescription(voter.node_id, uuid_text(voter.directory_id), voter.host, voter.port)


def differs(image: MetadataImage, quorums: VoterSet) -> bool:
    """Return whether the log's record names others than the quorum's log.

    Addresses are compared if an entry names them. Else each leader knows its own configuration's.
    """
    if image.features.levels.get(LOGBERG_VERSION, 0) < VOTER_CHANGES_FROM:
        return False
    named = {(voter.voter_id, voter.voter_directory_id): voter for voter in image.quorum.voters}
    if named.keys() != {(voter.node_id, voter.directory_id) for voter in quorums.voters}:
        return True
    return quorums.named and any(
        v.host
        and named[v.node_id, v.directory_id]
        != listening_at(named[v.node_id, v.directory_id], v.host, v.port)
        for v in quorums.voters
    )


def set_voters(image: MetadataImage, voters: Iterable[Voter]) -> ControllerResult:
    """Write these voters. Whoever is in the log keeps its other endpoints."""
    known = {(voter.voter_id, voter.voter_directory_id): voter for voter in image.quorum.voters}
    ordered = sorted(voters, key=lambda voter: (voter.node_id, voter.directory_id))
    named = [
        listening_at(known[v.node_id, v.directory_id], v.host, v.port)
        if (v.node_id, v.directory_id) in known
        else voter_record(v.node_id, v.directory_id, v.host, v.port)
        for v in ordered
    ]
    return ControllerResult(
        (VotersRecord(with_addresses(image, named)),), reason="who votes has changed"
    )
