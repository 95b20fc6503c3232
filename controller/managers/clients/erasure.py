"""Erases a subject: removes what it has, and says that its key is to be destroyed (ADR 0093).

Rule: one decision removes the subject's credentials and tokens and writes the erasure, so no state
has a credential whose key is destroyed. Each controller destroys the key when it applies that.
Access tokens are revoked, since that is what ends connections which somebody opened with them.
An address of nobody who was authenticated is a subject, too. It has nothing but its key.
"""

from collections.abc import Callable, Generator
from itertools import takewhile
from typing import Final

import msgspec

from controller.managers.sealing_key import (
    current_number,
    keys_awaited,
    request_digest,
    usable_key,
)
from controller.result import ControllerResult
from metadata.credentials import judged_at
from metadata.errors import ErrorCode, LogbergError
from metadata.features import ERASURE_FROM, LOGBERG_VERSION
from metadata.image import MetadataImage
from metadata.messages import EraseReply, EraseRequest
from metadata.messages.wire import canonical
from metadata.plain_text import check_plain
from metadata.pseudonyms import number_of_pseudonym
from metadata.records import (
    AccessTokenRecord,
    AclPermissionType,
    Record,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    SubjectErasedRecord,
)
from metadata.records.credentials import NEVER
from metadata.records.erasure import SEALED_FROM
from metadata.sealed_addresses import FROM, network_of_address, opened_address, subject_of_address
from metadata.sealed_blocks import SealingError
from metadata.sealed_texts import number_of_text
from metadata.sealing import ClusterKey
from metadata.steps import finished
from metadata.uuids import uuid_text

_USER: Final = "user:"
_REMOVALS: Final = (
    RemoveUserScramCredentialRecord,
    RemoveDelegationTokenRecord,
    AccessTokenRecord,
)
"""What ends credentials, delegation tokens and access tokens."""
_STEP: Final = 1_000
"""Tokens between two yields."""
_BLOCKS: Final = 8
"""Sealed texts between two yields: one takes some tenths of a millisecond to open."""


class ErasureManager:
    """Decides about erasures."""

    def __init__(
        self,
        key: ClusterKey | None,
        wall_ms: Callable[[], int],
        has_pseudonym: Callable[[str], bool] = lambda _principal: False,
    ) -> None:
        """`wall_ms`: the time at which access tokens end.

        `has_pseudonym`: whether the log shall have a principal under a pseudonym only.
        """
        self._key = key
        self._wall_ms = wall_ms
        self._has_pseudonym = has_pseudonym

    def erase(
        self, image: MetadataImage, request: EraseRequest
    ) -> Generator[None, None, ControllerResult]:
        """Erase a subject. Raises LogbergError."""
        subject = checked_subject(request)
        level = image.features.levels.get(LOGBERG_VERSION, 0)
        if level < ERASURE_FROM:
            raise LogbergError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"subjects have keys of their own from {LOGBERG_VERSION} {ERASURE_FROM} on, and it "
                f"is {level}: when all nodes run this release, raise it with `logberg features "
                f"upgrade {LOGBERG_VERSION}={ERASURE_FROM}`. What is sealed before that can't be "
                "erased",
            )
        key = usable_key(self._key, image)
        keys, named = key.subjects.keys, image.quorum.subject_keys_id
        if keys is None or keys.id != named:
            raise keys_awaited()
        if subject.startswith(FROM):
            return (yield from _address_erased(key, image, subject, request))
        return (yield from self._user_erased(key, image, subject, request))

    def meaning(self, request: EraseRequest) -> bytes:
        """Return what stands for a request where the log keeps its digest.

        Who has the log could try all addresses against a digest of one. So that digest is made with
        a key that the erasure destroys, and the request can't be sent again with its id.
        """
        if self._key is None or not request.subject.startswith(FROM):
            return canonical(request)
        return request_digest(self._key, canonical(request))

    def as_first_sent(
        self, image: MetadataImage, request: EraseRequest, before: EraseReply
    ) -> EraseRequest:
        """Return a request as it was when it had an answer under the same request id.

        The first one named a person, and was about the pseudonym. Nothing says any more whose that
        was, so any name has this answer, as long as the log has nothing under that name: else it
        would say that somebody is erased who is not. Other requests stay as they are.
        """
        owner, number = f"User:{request.subject.removeprefix(_USER)}", _number_in(before.subject)
        if (
            number is not None
            and image.erasures.has(number)
            and request.subject.startswith(_USER)
            and self._has_pseudonym(owner)
            and not finished(self._removed(image, owner))
        ):
            return msgspec.structs.replace(request, subject=before.subject)
        return request

    def _user_erased(
        self, key: ClusterKey, image: MetadataImage, subject: str, request: EraseRequest
    ) -> Generator[None, None, ControllerResult]:
        name = subject.removeprefix(_USER)
        if number_of_pseudonym(name) is not None:
            yield from _check_pseudonym(image, name)
        owner = f"User:{name}"
        removed = yield from self._removed(image, owner)
        if not removed and self._has_pseudonym(owner):
            # The record of an erasure would put the name into the log.
            raise _nobody(f"no pseudonym stands for {name[:50]!r}, and the log has nothing of it")
        erased = SubjectErasedRecord(
            subject, (current_number(key, image, subject), key.requests_number())
        )
        credentials, tokens, access = (
            sum(isinstance(record, kind) for record in removed) for kind in _REMOVALS
        )
        reply = EraseReply(subject, credentials, tokens, access, dry_run=request.dry_run)
        return ControllerResult((*removed, erased), reply)

    def _removed(self, image: MetadataImage, owner: str) -> Generator[None, None, list[Record]]:
        """Return what removes the credentials and tokens that an image has of a principal."""
        name = owner.removeprefix("User:")
        removed: list[Record] = [
            RemoveUserScramCredentialRecord(name, mechanism)
            for _, mechanism in takewhile(
                lambda each: each[0] == name, image.scram.order.after((name, -1))
            )
        ]
        for place, token_id in enumerate(image.tokens.order, 1):
            token = image.tokens.tokens[token_id]
            if token.owner == owner:
                removed.append(RemoveDelegationTokenRecord(token_id))
            if place % _STEP == 0:
                yield
        now = judged_at(image, self._wall_ms())
        for place, token_id in enumerate(image.credentials.token_order, 1):
            access = image.credentials.access_tokens[token_id]
            if access.principal == owner and access.revoked_ms == NEVER and access.expires_ms > now:
                removed.append(msgspec.structs.replace(access, revoked_ms=now))
            if place % _STEP == 0:
                yield
        return removed


def _number_in(subject: str) -> bytes | None:
    """Return the number in the pseudonym of a subject; None: it names no pseudonym."""
    is_user = subject.startswith(_USER)
    return number_of_pseudonym(subject.removeprefix(_USER)) if is_user else None


def _check_pseudonym(image: MetadataImage, name: str) -> Generator[None, None, None]:
    """Check that a pseudonym may be erased. Raises LogbergError.

    Who comes back gets another pseudonym, which no entry denies anything.
    """
    if name not in image.erasures.pseudonyms:
        raise _nobody(f"{name} is nobody's pseudonym: it was erased, or never given")
    who = f"User:{name}"
    for place, (_, entry) in enumerate(image.acls.entries.unordered_items(), 1):
        if entry.principal == who and entry.permission_type == AclPermissionType.DENY:
            raise _wrong(
                "subject",
                f"entry {uuid_text(entry.id)} denies something to {who}: remove it first, for "
                "whoever comes back after the erasure has another pseudonym, and is not denied it",
            )
        if place % _STEP == 0:
            yield


def _nobody(why: str) -> LogbergError:
    return LogbergError(ErrorCode.NOT_FOUND, why, {"field": "subject"})


def checked_subject(request: EraseRequest) -> str:
    """Return the subject, an address as its network. Raises LogbergError."""
    subject = request.subject
    check_plain("subject", subject)
    kind, colon, name = subject.partition(":")
    if kind + colon == _USER and name:
        if request.earlier:
            raise _wrong("earlier", "only erasures of an address have earlier texts")
        return subject
    network = network_of_address(name) if kind + colon == FROM else None
    if network is None:
        raise _wrong(
            "subject",
            f"{subject[:50]!r} is no user and no address; give user:NAME, or from:ADDRESS with an "
            "IP address",
        )
    return FROM + network


def _address_erased(
    key: ClusterKey, image: MetadataImage, subject: str, request: EraseRequest
) -> Generator[None, None, ControllerResult]:
    """Erase an address of nobody who was authenticated.

    What the log keeps of the request names the address nowhere. The numbers of addresses are made
    with a key that goes too, so nobody can try addresses against the erased number.
    """
    try:
        number = current_number(key, image, subject)
        numbers = [number, key.requests_number(), key.naming_number(image.erasures.addresses)]
        for place, text in enumerate(request.earlier, 1):
            older = number_of_text(text)
            if older is None or _network_in(key, text) != subject:
                raise _wrong("earlier", f"text {place} is no sealed text of this address")
            numbers.append(older)
            if place % _BLOCKS == 0:
                yield
    except SealingError:
        # An erasure was applied here that this image doesn't have yet.
        raise keys_awaited() from None
    erased = SubjectErasedRecord(SEALED_FROM + number.hex(), tuple(dict.fromkeys(numbers)))
    # The log remembers this answer; who is answered now gets the subject (`RequestedChange`).
    return ControllerResult((erased,), EraseReply("", 0, 0, 0, dry_run=request.dry_run))


def _network_in(key: ClusterKey, text: str) -> str | None:
    """Return the subject in a sealed text of an address of nobody; None: it can't be opened."""
    try:
        return subject_of_address("", opened_address(key, "", text))
    except SealingError:
        return None


def _wrong(field: str, why: str) -> LogbergError:
    return LogbergError(ErrorCode.INVALID_REQUEST, f"{field}: {why}", {"field": field})
