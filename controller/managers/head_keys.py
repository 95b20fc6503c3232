"""Decides which key counts for which voter, and which heads are signed by a majority (ADR 0087).

Rule: a voter's first key is taken from the voter itself. From then on a key changes in two ways
only: the key before and the new one both sign the change, or an operator names the new one. So
whoever has only a controller's TLS key, or can write to the log's disk, makes no key count.

No two keys in the log have one id. Whoever checks a note knows a key by its name and its id of four
bytes. So a thief of one key, who tries keys until one has the id of another, could spoil each note
that both sign. An id that a key had which the log has replaced since is free: the image has no
earlier keys, and each rotation needs another request of an operator.

A head is written if a majority of the voters in the log signed it, each with the key that the log
names for it. The caller has computed the root; nothing here reads the tree.
"""

from collections.abc import Iterable

from controller.result import ControllerResult
from ledger.merkle.heads import TreeHead, origin_of, rotation_text
from ledger.merkle.notes import ED25519, NoteError, NoteKey
from metadata.errors import ErrorCode, LogbergError
from metadata.features import LOGBERG_VERSION, SIGNED_HEADS_FROM
from metadata.image import MetadataImage
from metadata.messages import ChangeHeadKeyReply, ChangeHeadKeyRequest
from metadata.records import HeadKeyCause, HeadKeyRecord, HeadSignature, SignedHeadRecord


def heads_in_log(image: MetadataImage) -> bool:
    """Return whether the log holds keys and heads."""
    return (image.features.levels.get(LOGBERG_VERSION) or 0) >= SIGNED_HEADS_FROM


def key_of(image: MetadataImage, controller_id: int) -> HeadKeyRecord | None:
    """Return the key that counts for a voter; None: it has none, or is no voter."""
    directory = _directory(image, controller_id)
    found = image.heads.keys.get(controller_id)
    return found if found is not None and found.directory_id == directory else None


def register_key(
    image: MetadataImage, cluster_id: str, controller_id: int, public_key: bytes
) -> ControllerResult:
    """Write a voter's first key; no records if it has one, is no voter, or shows another's key.

    A key of another folder with the same node id goes. If two voters had one key, whoever stole it
    would sign for both. A key with the id of another counts as another's.
    """
    directory = _directory(image, controller_id)
    if directory is None or not heads_in_log(image) or key_of(image, controller_id) is not None:
        return ControllerResult(())
    if _owner_of(image, controller_id, public_key) is not None:
        return ControllerResult(())
    if _owner_of_id(image, cluster_id, public_key) is not None:
        return ControllerResult(())
    record = HeadKeyRecord(controller_id, directory, HeadKeyCause.REGISTERED, public_key, b"", b"")
    return ControllerResult((record,), reason="its first signed head")


def rotate_key(
    image: MetadataImage,
    cluster_id: str,
    controller_id: int,
    new: bytes,
    old_signature: bytes,
    new_signature: bytes,
) -> ControllerResult:
    """Write that a new key replaces the present one.

    No records unless both signed that, and while a key in the log has the new key's id.
    """
    present = key_of(image, controller_id)
    if present is None or present.cause != HeadKeyCause.ROTATING or new == present.public_key:
        return ControllerResult(())
    if _owner_of_id(image, cluster_id, new) is not None:
        return ControllerResult(())
    origin = origin_of(cluster_id, image.quorum.generation)
    text = rotation_text(origin, controller_id, present.public_key, new)
    if not NoteKey(origin, present.public_key).verifies(text, old_signature):
        return ControllerResult(())
    if not NoteKey(origin, new).verifies(text, new_signature):
        return ControllerResult(())
    record = HeadKeyRecord(
        controller_id, present.directory_id, HeadKeyCause.ROTATED, new, old_signature, new_signature
    )
    return ControllerResult((record,), reason="the old and the new key have signed")


def change_key(
    image: MetadataImage, cluster_id: str, request: ChangeHeadKeyRequest, *, reasoned: bool
) -> ControllerResult:
    """Ask a controller for another key, or name its key because the one before is lost.

    `reasoned`: whoever asks gave a reason. Raises LogbergError.
    """
    if not heads_in_log(image):
        level = image.features.levels.get(LOGBERG_VERSION) or 0
        raise LogbergError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"the log holds the controllers' keys from {LOGBERG_VERSION} {SIGNED_HEADS_FROM} on, "
            f"and it is {level}: when all nodes run this release, raise it with `logberg features "
            f"upgrade {LOGBERG_VERSION}={SIGNED_HEADS_FROM}`",
        )
    node_id = request.node_id
    directory = _directory(image, node_id)
    if directory is None:
        raise LogbergError(ErrorCode.INVALID_REQUEST, f"node {node_id} is no voter")
    present = key_of(image, node_id)
    if not request.public_key:
        if present is None:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                f"controller {node_id} has no key in the log yet: it registers one with its first "
                "signed head, if signed_head_ms is not 0 in its file",
            )
        cause, public = HeadKeyCause.ROTATING, present.public_key
    else:
        if not reasoned:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                "say why the key before can't sign this change (--reason): the log keeps it",
            )
        cause, public = HeadKeyCause.REPLACED, _public_key(request.public_key)
        _must_be_free(image, cluster_id, node_id, public)
    reply = ChangeHeadKeyReply(
        node_id, NoteKey(origin_of(cluster_id), public).text, cause == HeadKeyCause.ROTATING
    )
    same = present is not None and (present.cause, present.public_key) == (cause, public)
    if same or (cause == HeadKeyCause.REPLACED and present and present.public_key == public):
        return ControllerResult((), reply)
    return ControllerResult((HeadKeyRecord(node_id, directory, cause, public, b"", b""),), reply)


def remove_keys(image: MetadataImage) -> ControllerResult:
    """Remove the keys of those who vote no more."""
    return ControllerResult(
        tuple(
            HeadKeyRecord(
                key.controller_id,
                key.directory_id,
                HeadKeyCause.REMOVED,
                key.public_key,
                b"",
                b"",
            )
            for key in keys_without_voter(image)
        ),
        reason="it votes no more",
    )


def keys_without_voter(image: MetadataImage) -> list[HeadKeyRecord]:
    """Return the keys in the log whose controller, with this folder, votes no more."""
    voters = {(voter.voter_id, voter.voter_directory_id) for voter in image.quorum.voters}
    keys = (key for _, key in sorted(image.heads.keys.items()))
    return [key for key in keys if (key.controller_id, key.directory_id) not in voters]


def write_head(
    image: MetadataImage, head: TreeHead, signatures: Iterable[HeadSignature]
) -> ControllerResult:
    """Write a head, with the signatures that count; no records unless they are a majority."""
    newest = image.heads.newest
    if not heads_in_log(image) or (newest is not None and newest.size >= head.size):
        return ControllerResult(())
    counting = counting_signatures(image, head, signatures)
    if len(counting) <= len(image.quorum.voters) // 2:
        return ControllerResult(())
    record = SignedHeadRecord(head.origin, head.size, head.root, counting)
    return ControllerResult((record,), reason="a majority has signed")


def counting_signatures(
    image: MetadataImage, head: TreeHead, signatures: Iterable[HeadSignature]
) -> tuple[HeadSignature, ...]:
    """Return the right signatures by the keys in the log, by controller id, each voter once."""
    found: dict[int, HeadSignature] = {}
    for each in signatures:
        key = key_of(image, each.controller_id)
        if key is None or key.public_key != each.public_key or each.controller_id in found:
            continue
        if NoteKey(head.origin, each.public_key).verifies(head.text, each.signature):
            found[each.controller_id] = each
    return tuple(found[number] for number in sorted(found))


def _directory(image: MetadataImage, controller_id: int) -> bytes | None:
    for voter in image.quorum.voters:
        if voter.voter_id == controller_id:
            return voter.voter_directory_id
    return None


def _public_key(text: str) -> bytes:
    """Return the key in a line of `head.pub`. Raises LogbergError."""
    try:
        key = NoteKey.parse(text)
    except NoteError as error:
        raise LogbergError(ErrorCode.INVALID_REQUEST, f"publicKey: {error}") from None
    if key.kind != ED25519:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST, "publicKey: not the key of a controller (head.pub)"
        )
    return key.public


def _must_be_free(image: MetadataImage, cluster_id: str, node_id: int, public: bytes) -> None:
    owner = _owner_of(image, node_id, public)
    if owner is not None:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"publicKey: it is the key of controller {owner}; each signs with its own",
        )
    owner = _owner_of_id(image, cluster_id, public)
    if owner is not None:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"publicKey: controller {owner} has a key with the same id, so nobody could tell their "
            f"signatures apart: let controller {node_id} draw another key (stop it, remove its "
            "head.key and start it), and name that one",
        )


def _owner_of(image: MetadataImage, node_id: int, public: bytes) -> int | None:
    """Return which other controller has the key; None: nobody."""
    return next(
        (
            other
            for other, key in image.heads.keys.items()
            if other != node_id and key.public_key == public
        ),
        None,
    )


def _owner_of_id(image: MetadataImage, cluster_id: str, public: bytes) -> int | None:
    """Return which controller has another key with the id of this one; None: nobody.

    The id depends on the name: that of the cluster as it is now, under which it signs, and that of
    the cluster's first life, under which people are told the key.
    """
    origins = {origin_of(cluster_id), origin_of(cluster_id, image.quorum.generation)}
    ids = {NoteKey(origin, public).id for origin in origins}
    for controller_id, key in image.heads.keys.items():
        taken = {NoteKey(origin, key.public_key).id for origin in origins}
        if key.public_key != public and ids & taken:
            return controller_id
    return None
