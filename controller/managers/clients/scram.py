"""Sets and removes SCRAM credentials (KIP-554, 900; RFC 5802).

Rules of Kafka's ScramControlManager: one change for each user and mechanism in a request. If one of
a user's changes is refused, none of them is made. The answer has one result for each user.

The request brings the salted password. The record holds what verifies it, the stored key and the
server key, and both are sealed under the cluster key (`metadata.sealing`). Without a cluster key
nothing can be set.
"""

import hashlib
import hmac
from collections.abc import Callable, Generator
from typing import Final

import msgspec

from controller.managers.sealing_key import request_digest, seal_about, usable_key
from controller.result import ControllerResult
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages import (
    AlteredUser,
    AlterScramReply,
    AlterScramRequest,
    ScramDeletion,
    ScramUpsertion,
    error_reply,
)
from metadata.messages.scram import MECHANISMS
from metadata.plain_text import check_plain
from metadata.records import (
    Record,
    RemoveUserScramCredentialRecord,
    ScramMechanism,
    UserScramCredentialRecord,
)
from metadata.sealed_blocks import SealingError
from metadata.sealed_places import scram_place, user_subject
from metadata.sealing import ClusterKey
from runtime.randomness import Random

ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 16_384
NAME_MAX: Final = 249
"""Characters of a user's name."""
_HASHES: Final = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}
_STEP: Final = 8
"""Credentials between two yields: the key of each user takes a fraction of a millisecond."""


class ScramManager:
    """Decides about SCRAM credentials."""

    def __init__(self, random: Random, key: ClusterKey | None) -> None:
        """`random` draws what makes each sealed block another one."""
        self._random = random
        self._key = key

    def alter(
        self, image: MetadataImage, request: AlterScramRequest
    ) -> Generator[None, None, ControllerResult]:
        """Set and remove credentials; yields every 8."""
        records: dict[str, list[Record]] = {}
        hashes: dict[str, list[bytes]] = {}
        errors: dict[str, LogbergError] = {}
        seen: set[tuple[str, str]] = set()
        changes: list[ScramDeletion | ScramUpsertion] = [*request.deletions, *request.upsertions]
        names = [change.name for change in changes]
        if not names:
            raise LogbergError(ErrorCode.INVALID_REQUEST, "give upsertions or deletions")
        for number, change in enumerate(changes, 1):
            try:
                mechanism = _check_user(change.name, change.mechanism, seen)
                own = records.setdefault(change.name, [])
                if isinstance(change, ScramUpsertion):
                    record, salted = self._set(image, change, mechanism)
                    own.append(record)
                    hashes.setdefault(change.name, []).extend(salted)
                else:
                    own.append(_removed(image, change.name, mechanism))
            except LogbergError as error:
                errors.setdefault(change.name, error)
            if number % _STEP == 0:
                yield
        users = [
            AlteredUser(name, error_reply(errors[name]) if name in errors else None)
            for name in dict.fromkeys(names)
        ]
        done = [name for name in records if name not in errors]
        return ControllerResult(
            [record for name in done for record in records[name]],
            AlterScramReply(tuple(users), dry_run=request.dry_run),
            salted_hashes=tuple(each for name in done for each in hashes.get(name, ())),
        )

    @property
    def has_key(self) -> bool:
        """This controller can seal secrets."""
        return self._key is not None

    def secret_meaning(self, meaning: bytes) -> bytes:
        """Return what stands for the meaning of a request with secrets. Only with a key.

        Raises LogbergError while keys of subjects are awaited.
        """
        assert self._key is not None
        return request_digest(self._key, meaning)

    def meaning(
        self, canonical: Callable[[msgspec.Struct], bytes], request: AlterScramRequest
    ) -> bytes:
        """Return what stands for a request where the log keeps its digest: never the secret.

        Without a key the secrets are left out; then nothing is set either. Raises LogbergError
        while keys of subjects are awaited.
        """
        if self._key is not None:
            return request_digest(self._key, canonical(request))
        upsertions = tuple(
            msgspec.structs.replace(each, salted_password=b"") for each in request.upsertions
        )
        return canonical(msgspec.structs.replace(request, upsertions=upsertions))

    def _set(
        self, image: MetadataImage, wanted: ScramUpsertion, mechanism: ScramMechanism
    ) -> tuple[Record, list[bytes]]:
        """Return the record and the salted hashes of its sealed fields. Raises LogbergError."""
        usable_key(self._key, image)
        digest = _HASHES[mechanism]
        _check_credential(wanted, hashlib.new(digest).digest_size)
        client_key = hmac.digest(wanted.salted_password, b"Client Key", digest)
        stored_key = hashlib.new(digest, client_key).digest()
        server_key = hmac.digest(wanted.salted_password, b"Server Key", digest)
        clear = UserScramCredentialRecord(
            wanted.name, mechanism, wanted.salt, stored_key, server_key, wanted.iterations
        )
        return self._sealed(image, clear)

    def _sealed(
        self, image: MetadataImage, clear: UserScramCredentialRecord
    ) -> tuple[Record, list[bytes]]:
        """Return a credential with its keys sealed, and their salted hashes."""
        key = usable_key(self._key, image)
        stored, server = (
            seal_about(
                key,
                image,
                user_subject(clear.name),
                scram_place(clear.name, clear.mechanism, field),
                secret,
                self._random.randbytes(16),
            )
            for field, secret in (("storedKey", clear.stored_key), ("serverKey", clear.server_key))
        )
        record = msgspec.structs.replace(clear, stored_key=stored.block, server_key=server.block)
        return record, [stored.salted_hash, server.salted_hash]

    def of_import(
        self, image: MetadataImage, clear: UserScramCredentialRecord
    ) -> tuple[Record, list[bytes]]:
        """Return the record of a credential that another store held, and its salted hashes.

        Its keys come in clear and are sealed. Raises LogbergError.
        """
        mechanism = _check_user(clear.name, mechanism_name(clear.mechanism), set())
        size = hashlib.new(_HASHES[mechanism]).digest_size
        _check_iterations(clear.iterations, clear.salt)
        if len(clear.stored_key) != size or len(clear.server_key) != size:
            raise _unacceptable("storedKey", f"it and serverKey have {size} bytes")
        return self._sealed(image, clear)

    def is_same(self, sealed: UserScramCredentialRecord, clear: UserScramCredentialRecord) -> bool:
        """Return whether a credential in the log is this one. One that can't be opened isn't."""
        if (sealed.salt, sealed.iterations) != (clear.salt, clear.iterations) or self._key is None:
            return False
        try:
            return all(
                self._key.open(scram_place(sealed.name, sealed.mechanism, field), block) == wanted
                for field, block, wanted in (
                    ("storedKey", sealed.stored_key, clear.stored_key),
                    ("serverKey", sealed.server_key, clear.server_key),
                )
            )
        except SealingError:
            return False


def mechanism_name(code: int) -> str:
    """Return the name of a mechanism; a log may hold a code that this build doesn't know."""
    return next((name for name, known in MECHANISMS.items() if known == code), str(code))


def _check_user(name: str, mechanism: str, seen: set[tuple[str, str]]) -> ScramMechanism:
    """Check whose credential is changed, and that it is changed once. Raises LogbergError."""
    if not name:
        raise _unacceptable("name", "the user's name is empty")
    if len(name) > NAME_MAX:
        raise _unacceptable("name", f"it has more than {NAME_MAX} characters")
    check_plain("name", name, ErrorCode.UNACCEPTABLE_CREDENTIAL)
    if mechanism not in MECHANISMS:
        raise LogbergError(
            ErrorCode.UNSUPPORTED_SASL_MECHANISM,
            f"mechanism: {mechanism[:50]!r} is unknown; give {' or '.join(MECHANISMS)}",
            {"field": "mechanism"},
        )
    if (name, mechanism) in seen:
        raise LogbergError(
            ErrorCode.DUPLICATE_RESOURCE,
            f"the {mechanism} credential of user {name!r} is altered twice in the request",
        )
    seen.add((name, mechanism))
    return MECHANISMS[mechanism]


def _check_iterations(iterations: int, salt: bytes) -> None:
    if iterations < ITERATIONS_MIN:
        raise _unacceptable("iterations", f"too few; give {ITERATIONS_MIN} or more")
    if iterations > ITERATIONS_MAX:
        raise _unacceptable("iterations", f"too many; give {ITERATIONS_MAX} or fewer")
    if not salt:
        raise _unacceptable("salt", "it is empty")


def _check_credential(wanted: ScramUpsertion, size: int) -> None:
    _check_iterations(wanted.iterations, wanted.salt)
    if len(wanted.salted_password) != size:
        raise _unacceptable("saltedPassword", f"of {wanted.mechanism} it has {size} bytes")


def _removed(image: MetadataImage, name: str, mechanism: ScramMechanism) -> Record:
    if (name, mechanism) not in image.scram.credentials:
        raise LogbergError(
            ErrorCode.RESOURCE_NOT_FOUND,
            f"user {name!r} has no {mechanism_name(mechanism)} credential",
        )
    return RemoveUserScramCredentialRecord(name, mechanism)


def _unacceptable(field: str, why: str) -> LogbergError:
    return LogbergError(ErrorCode.UNACCEPTABLE_CREDENTIAL, f"{field}: {why}", {"field": field})
