"""Answers the routes of erasures, and of the keys of subjects."""

import msgspec

from controller.erasure.keeping import SubjectKeysKeeping
from controller.http.clients.asked import Asked
from controller.leader.parts import LeaderParts
from controller.leader.requested_change import RequestedChange
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages import EraseReply, EraseRequest, ErasuresReply, SubjectKeysReply


def erase_subject(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """`POST /v1/erasures`.

    A person who was erased by name has no pseudonym any more. So the same request, sent again,
    would be another one. It is read as the first one was, and has the same answer. Raises
    LogbergError.
    """
    message: EraseRequest = asked.message
    erasures = leader.clients.erasures
    pending = leader.proposer.pending
    if pending is not None and not message.dry_run:
        before = leader.changes.remembered_reply(asked.request, EraseReply)
        if before is not None:
            message = erasures.as_first_sent(pending.image, message, before)
    change = RequestedChange.of(
        message, "EraseSubject", EraseReply, lambda image: erasures.erase(image, message)
    )
    return change._replace(
        meaning=lambda: erasures.meaning(message),
        complete=lambda reply: msgspec.structs.replace(reply, subject=message.subject),
    )


def erasures_of(
    node_id: int, image: MetadataImage, keeping: SubjectKeysKeeping | None
) -> ErasuresReply:
    """Return how far a controller is with destroying keys."""
    erasures = len(image.erasures.erased)
    if keeping is None:
        return ErasuresReply(
            node_id,
            image.offset,
            None,
            held=False,
            usable=False,
            erasures=erasures,
            destroyed=erasures,
        )
    state = keeping.state
    return ErasuresReply(
        node_id,
        image.offset,
        None if state.keys_id is None else state.keys_id.hex(),
        state.held,
        state.usable,
        state.erasures,
        state.destroyed,
    )


def keys_for_broker(image: MetadataImage, keeping: SubjectKeysKeeping | None) -> SubjectKeysReply:
    """Return the tree of keys, sealed. Raises LogbergError while this controller can't use it."""
    named = image.quorum.subject_keys_id
    sealed = None if keeping is None else keeping.sealed_tree()
    if named is None or sealed is None:
        raise LogbergError(
            ErrorCode.OFFSET_NOT_AVAILABLE,
            "this controller can use no keys of subjects now: it has no cluster key, or it does "
            "not know yet what was erased while it was away; ask another",
        )
    return SubjectKeysReply(named.hex(), sealed)
