"""Which keys secrets are sealed under, and whether this controller has them (ADR 0031, 0039, 0093).

From `logberg.version` 2 on, the log names the cluster key. Below that level, the first credential
shows it. Once the log names a tree of subjects' keys, secrets about users are sealed under keys of
their own.
"""

from collections.abc import Mapping
from typing import Final

from metadata.errors import ErrorCode, LogbergError
from metadata.features import ERASURE_FROM, LOGBERG_VERSION, NAMED_KEY_FROM
from metadata.image import MetadataImage
from metadata.pseudonyms import number_of_pseudonym
from metadata.records import ClusterKeyRecord
from metadata.sealed_addresses import FROM
from metadata.sealed_blocks import key_id_of
from metadata.sealing import ClusterKey, Sealed

_USER: Final = "user:"


def usable_key(key: ClusterKey | None, image: MetadataImage) -> ClusterKey:
    """Return the key under which secrets are sealed.

    Raises LogbergError SECURITY_DISABLED without one, or if the log's secrets are sealed under
    another: this controller has a wrong file.
    """
    if key is None:
        raise LogbergError(
            ErrorCode.SECURITY_DISABLED,
            "this controller has no cluster key, so it can't seal secrets: put the same "
            "cluster.key into every controller's folder (logberg cluster-key) and restart it",
        )
    used = _key_in_use(image)
    if used is not None and used != key.id:
        raise LogbergError(
            ErrorCode.SECURITY_DISABLED,
            f"this controller's cluster key is {key.id.hex()}, and the log's credentials are "
            f"sealed under {used.hex()}: put the file of the other controllers here",
        )
    return key


def seal_about(
    key: ClusterKey,
    image: MetadataImage,
    subject: str,
    place: str,
    secret: bytes,
    random_bytes: bytes,
) -> Sealed:
    """Seal a secret about a subject, such as `user:alice`.

    At a level without keys of subjects it is sealed under the cluster key. Raises LogbergError
    while the keys are awaited.
    """
    named, keys = image.quorum.subject_keys_id, key.subjects.keys
    if named is None and not may_have_keys(image, key):
        return key.seal(place, secret, random_bytes)
    if keys is None or keys.id != named:
        raise keys_awaited()
    return key.seal_for(current_number(key, image, subject), place, secret, random_bytes)


def may_have_keys(image: MetadataImage, key: ClusterKey) -> bool:
    """Return whether the log may name, or names, a tree that this cluster key seals."""
    level = image.features.levels.get(LOGBERG_VERSION, 0)
    return level >= ERASURE_FROM and image.quorum.cluster_key_id == key.id


def current_number(key: ClusterKey, image: MetadataImage, subject: str) -> bytes:
    """Return the number under which values of a subject are sealed now.

    A pseudonym has one number, also when it is erased.
    Raises SealingError for an address, if its number can't be made with the keys that are here.
    """
    if subject.startswith(FROM):
        return key.number_of_address(subject.removeprefix(FROM), image.erasures.addresses)
    if subject.startswith(_USER):
        number_of_person = number_of_pseudonym(subject.removeprefix(_USER))
        if number_of_person is not None:
            return number_of_person
    times = 0
    while image.erasures.has(number := key.number_of(subject, times)):
        times += 1
    return number


def request_digest(key: ClusterKey, meaning: bytes) -> bytes:
    """Return what stands for a request with secrets of users where the log keeps its digest.

    It is made with a key that every erasure destroys. Raises LogbergError while that is not here:
    the same request would have another digest later.
    """
    if key.subjects.awaited:
        raise keys_awaited()
    return key.request_mac(meaning)


def keys_awaited() -> LogbergError:
    """Return the error of a secret that can't be sealed under its subject's key yet."""
    return LogbergError(
        ErrorCode.THROTTLED,
        "this controller does not have the keys of subjects yet: it gets them from the others "
        "within a second, if those run; ask again",
        retry_after_ms=250,
    )


def wrong_key(key: ClusterKey | None, image: MetadataImage, replaces: str) -> str:
    """Return why a controller with this key must not lead; empty: it may.

    A controller without a key may lead: it seals nothing. `replaces`: the id of a lost key, which
    the operator lets this one replace.
    """
    named = image.quorum.cluster_key_id
    if key is None or named is None or named == key.id or named.hex() == replaces:
        return ""
    return (
        f"this controller's cluster key is {key.id.hex()}, and the log names {named.hex()}: it "
        "does not lead. Put the file of the other controllers here and restart it. If all copies "
        f'of that key are lost, set cluster_key_replaces = "{named.hex()}" on each controller'
    )


def naming_records(
    key: ClusterKey | None, image: MetadataImage, levels: Mapping[str, int], replaces: str
) -> tuple[ClusterKeyRecord, ...]:
    """Return the record with which the log names this controller's key, if it lacks that.

    `levels`: the feature levels that hold for the record.
    """
    if key is None or levels.get(LOGBERG_VERSION, 0) < NAMED_KEY_FROM:
        return ()
    named = image.quorum.cluster_key_id
    if named is not None:
        return (ClusterKeyRecord(key.id),) if named.hex() == replaces != key.id.hex() else ()
    return (ClusterKeyRecord(key.id),) if _key_in_use(image) in (None, key.id) else ()


def _key_in_use(image: MetadataImage) -> bytes | None:
    named = image.quorum.cluster_key_id
    first = next(iter(image.scram.order), None)
    if named is not None or first is None:
        return named
    return key_id_of(image.scram.credentials[first].stored_key)
