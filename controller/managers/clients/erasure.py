"""Erases a subject: removes what it has, and says that its key is to be destroyed (ADR 0093).

Rule: one decision removes the subject's credentials and tokens and writes the erasure, so no state
has a credential whose key is destroyed. Each controller destroys the key when it applies that.
Access tokens are revoked, since that is what ends connections which somebody opened with them.
"""

from collections.abc import Callable, Generator
from itertools import takewhile
from typing import Final

import msgspec

from controller.managers.sealing_key import current_number, keys_awaited, usable_key
from controller.result import ControllerResult
from metadata.credentials import judged_at
from metadata.errors import ErrorCode, LogbergError
from metadata.features import ERASURE_FROM, LOGBERG_VERSION
from metadata.image import MetadataImage
from metadata.messages import EraseReply, EraseRequest
from metadata.plain_text import check_plain
from metadata.records import (
    Record,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    SubjectErasedRecord,
)
from metadata.records.credentials import NEVER
from metadata.sealing import ClusterKey

_USER: Final = "user:"
_STEP: Final = 1_000
"""Tokens between two yields."""


class ErasureManager:
    """Decides about erasures."""

    def __init__(self, key: ClusterKey | None, wall_ms: Callable[[], int]) -> None:
        """`wall_ms`: the time at which access tokens end."""
        self._key = key
        self._wall_ms = wall_ms

    def erase(
        self, image: MetadataImage, request: EraseRequest
    ) -> Generator[None, None, ControllerResult]:
        """Erase a subject. Raises LogbergError."""
        name = _user_of(request.subject)
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
        removed: list[Record] = [
            RemoveUserScramCredentialRecord(name, mechanism)
            for _, mechanism in takewhile(
                lambda each: each[0] == name, image.scram.order.after((name, -1))
            )
        ]
        credentials = len(removed)
        owner = f"User:{name}"
        for place, token_id in enumerate(image.tokens.order, 1):
            token = image.tokens.tokens[token_id]
            if token.owner == owner:
                removed.append(RemoveDelegationTokenRecord(token_id))
            if place % _STEP == 0:
                yield
        tokens = len(removed) - credentials
        now = judged_at(image, self._wall_ms())
        for place, token_id in enumerate(image.credentials.token_order, 1):
            access = image.credentials.access_tokens[token_id]
            if access.principal == owner and access.revoked_ms == NEVER and access.expires_ms > now:
                removed.append(msgspec.structs.replace(access, revoked_ms=now))
            if place % _STEP == 0:
                yield
        erased = SubjectErasedRecord(
            request.subject,
            (current_number(key, image, request.subject), key.requests_number()),
        )
        reply = EraseReply(
            request.subject,
            credentials,
            tokens,
            len(removed) - credentials - tokens,
            dry_run=request.dry_run,
        )
        return ControllerResult((*removed, erased), reply)


def _user_of(subject: str) -> str:
    """Return the user's name. Raises LogbergError."""
    check_plain("subject", subject)
    name = subject.removeprefix(_USER)
    if name == subject or not name:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"subject: {subject[:50]!r} is no user; give user:NAME",
            {"field": "subject"},
        )
    return name
