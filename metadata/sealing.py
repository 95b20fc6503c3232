"""Sealed blocks: secrets that enter the log encrypted, under a key that never does (ADR 0031).

A sealed block is a field of a record that holds a secret encrypted under the cluster key. The log,
checkpoints, state hashes and brokers hold the block and never the secret. A block is bound to its
place: after a move to another user or field it can't be opened.

A value that is about a subject is sealed under the subject's own key, which can be destroyed
(ADR 0093, `metadata.subject_keys`). Its key is made of the subject's key and the cluster key.
Whoever lacks one of the two opens nothing. `metadata.sealed_blocks` says what a block looks like.

The batch's extension 1 also holds the salted hash SHA-256(salt, secret). With it, a reader who
opens a block can prove that the block held this secret from the beginning. Without the salt, the
hash reveals nothing.

Nonce and salt are derived with the key from random bytes, the place and the secret. So nobody can
predict them from other random numbers of the program, and a nonce repeats only if all three do. In
format 2 they are derived with the subject's key, so that the salt can't be made again either.
"""

import hmac
from hashlib import sha256
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from metadata.sealed_blocks import (
    KEY_ID_BYTES,
    MAGIC,
    NONCE_BYTES,
    NUMBER_AT,
    SALT_BYTES,
    SUBJECT_MAGIC,
    SealingError,
    key_id_of,
    number_of_block,
)
from metadata.subject_keys import NUMBER_BYTES, SubjectKeyring

KEY_BYTES: Final = 32
_REQUESTS: Final = "requests"
_ADDRESSES: Final = "addresses"


class Sealed(NamedTuple):
    """A secret, sealed."""

    block: bytes
    salted_hash: bytes
    """For the batch's extension 1."""


class ClusterKey:
    """The key of a cluster. Its text shows its id and never the key."""

    def __init__(
        self, key: bytes, token_secret: bytes = b"", subjects: SubjectKeyring | None = None
    ) -> None:
        """`key`: 32 secret bytes, the same on all controllers. Raises ValueError.

        `token_secret`: what Kafka's brokers have as delegation.token.secret.key; empty: there is
        none, and tokens are made with the key itself. `subjects`: an own, empty one if absent.
        """
        if len(key) != KEY_BYTES:
            raise ValueError(f"a cluster key has {KEY_BYTES} bytes, not {len(key)}")
        self.id = sha256(b"logberg cluster key id\0" + key).digest()[:KEY_ID_BYTES]
        """Tells keys apart, and nothing about the key."""
        self.subjects = SubjectKeyring() if subjects is None else subjects
        """The keys of subjects that this process may use."""
        self._key = key
        self._token_secret = token_secret
        self._requests: tuple[bytes, int] = (b"", 0)
        """A tree's id, and how often the key of requests was destroyed in it."""
        self._cipher = AESGCM(self._derived(b"sealed blocks"))
        self._names = self._derived(b"nonces and salts")

    def __repr__(self) -> str:
        return f"ClusterKey({self.id.hex()})"

    def seal(self, place: str, secret: bytes, random_bytes: bytes) -> Sealed:
        """Seal a secret for a place, such as `scram/alice/1/storedKey`.

        `random_bytes`: at least 16, drawn anew each time.
        """
        head = MAGIC + self.id
        return _sealed(head, self._cipher, self._names, place, secret, random_bytes)

    def number_of(self, subject: str, erased_times: int = 0) -> bytes:
        """Return the number of a subject such as `user:alice`.

        It is another one after each erasure, and says nothing about the subject to others.
        """
        about = b"%d\0%s" % (erased_times, subject.encode())
        return hmac.digest(self._derived(b"subjects"), about, "sha256")[:NUMBER_BYTES]

    def number_of_address(self, network: str, erased_times: int) -> bytes:
        """Return the number of an address that is a subject of its own.

        It is made with a key of the tree, which each erasure of an address destroys. Otherwise
        whoever has the cluster key could try all addresses against a number, also after the
        erasure. `erased_times`: how many addresses were erased. Raises SealingError without the
        key.
        """
        naming = self.naming_number(erased_times)
        return self.subject_mac(naming, _ADDRESSES, network.encode())[:NUMBER_BYTES]

    def naming_number(self, erased_times: int) -> bytes:
        """Return the number of the key that numbers of addresses are made with."""
        return self.number_of(_ADDRESSES, erased_times)

    def seal_for(self, number: bytes, place: str, secret: bytes, random_bytes: bytes) -> Sealed:
        """Seal a secret about a subject, as `seal` does. Raises SealingError without its key."""
        key = self._key_of(number)
        head = SUBJECT_MAGIC + self.id + number
        names = hmac.digest(key, b"logberg nonces and salts", "sha256")
        return _sealed(head, _cipher_of(key), names, place, secret, random_bytes)

    def subject_mac(self, number: bytes, purpose: str, data: bytes) -> bytes:
        """Return 64 bytes that nobody can make once the subject's key is destroyed.

        Raises SealingError without the subject's key.
        """
        return hmac.digest(self._key_of(number), b"logberg " + purpose.encode() + data, "sha512")

    def request_mac(self, meaning: bytes) -> bytes:
        """Return what stands for a request that held secrets, where the log keeps its digest.

        With the key of it, somebody could try guesses of a password. So where there are keys of
        subjects, it is made with one of them, and every erasure destroys that and takes the next.
        """
        if self.subjects.keys is None:
            return self.mac(_REQUESTS, meaning)
        return self.subject_mac(self.requests_number(), _REQUESTS, meaning)

    def requests_number(self) -> bytes:
        """Return the number of the key that digests of requests are made with now.

        Raises SealingError without keys of subjects.
        """
        keys = self.subjects.keys
        if keys is None:
            raise SealingError("the keys of subjects are not here")
        tree, times = self._requests
        if tree != keys.id:
            times = 0
        while keys.key_of(number := self.number_of(_REQUESTS, times)) is None:
            times += 1
        # What is destroyed stays destroyed, so the next search begins here.
        self._requests = keys.id, times
        return number

    def open(self, place: str, block: bytes) -> bytes:
        """Return the secret of a block. Raises SealingError."""
        return self.open_with_salt(place, block)[1]

    def open_with_salt(self, place: str, block: bytes) -> tuple[bytes, bytes]:
        """Return salt and secret of a block. Raises SealingError."""
        key_id = key_id_of(block)
        if key_id is None:
            raise SealingError("it is not a sealed block")
        if key_id != self.id:
            raise SealingError(
                f"it is sealed under cluster key {key_id.hex()}, and this one is {self.id.hex()}"
            )
        number = number_of_block(block)
        cipher = self._cipher if number is None else _cipher_of(self._key_of(number))
        head = NUMBER_AT + (0 if number is None else NUMBER_BYTES)
        nonce, encrypted = block[head : head + NONCE_BYTES], block[head + NONCE_BYTES :]
        try:
            opened = cipher.decrypt(nonce, encrypted, block[:head] + place.encode())
        except InvalidTag:
            raise SealingError("it was changed, or made for another place") from None
        return opened[:SALT_BYTES], opened[SALT_BYTES:]

    def _key_of(self, number: bytes) -> bytes:
        """Return the key under which values of a subject are sealed. Raises SealingError."""
        leaf = self.subjects.key_of(number)
        if leaf is None:
            why = "was destroyed, or it is not here" if self.subjects.keys else "is not here"
            raise SealingError(f"the key of its subject, {number.hex()}, {why}")
        return hmac.digest(self._derived(b"values of subjects"), leaf, "sha256")

    def with_token_secret(self, token_secret: bytes) -> "ClusterKey":
        """Return the same key with another secret for delegation tokens."""
        return ClusterKey(self._key, token_secret, self.subjects)

    def copy(self) -> "ClusterKey":
        """Return the same key with no key of a subject yet."""
        return ClusterKey(self._key, self._token_secret)

    def token_hmac(self, purpose: str, token_id: bytes) -> bytes:
        """Return a delegation token's secret, 64 bytes; see `token_secret`."""
        if self._token_secret:
            return hmac.digest(self._token_secret, token_id, "sha512")
        return self.mac(purpose, token_id)

    def mac(self, purpose: str, data: bytes) -> bytes:
        """Return 64 bytes that only the holder of the key can make (HMAC-SHA-512)."""
        return hmac.digest(self._derived(purpose.encode()), data, "sha512")

    def _derived(self, purpose: bytes) -> bytes:
        return hmac.digest(self._key, b"logberg " + purpose, "sha256")


def salted_hash(salt: bytes, secret: bytes) -> bytes:
    """Return what the batch's extension 1 holds of a secret."""
    return sha256(salt + secret).digest()


def _cipher_of(key: bytes) -> AESGCM:
    return AESGCM(hmac.digest(key, b"logberg sealed blocks", "sha256"))


def _sealed(
    head: bytes, cipher: AESGCM, names: bytes, place: str, secret: bytes, random_bytes: bytes
) -> Sealed:
    """Seal a secret behind a block's head, which is bound to it as the place is."""
    about = b"\0".join((random_bytes, place.encode(), secret))
    drawn = hmac.digest(names, about, "sha512")
    nonce, salt = drawn[:NONCE_BYTES], drawn[NONCE_BYTES : NONCE_BYTES + SALT_BYTES]
    encrypted = cipher.encrypt(nonce, salt + secret, head + place.encode())
    return Sealed(head + nonce + encrypted, salted_hash(salt, secret))
