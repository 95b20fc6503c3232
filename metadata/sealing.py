"""Sealed blocks: secrets that enter the log encrypted, under a key that never does (ADR 0031).

A sealed block is a field of a record that holds a secret encrypted under the cluster key. The log,
checkpoints, state hashes and brokers hold the block and never the secret. A block is bound to its
place: after a move to another user or field it can't be opened.

    magic `LGBS` (4 bytes), format 1 (1 byte), key id (8), nonce (12), AES-256-GCM of salt (16) and
    secret, with its tag (16)

The batch's extension 1 also holds the salted hash SHA-256(salt, secret). With it, a reader who
opens a block can prove that the block held this secret from the beginning. Without the salt, the
hash reveals nothing.

Nonce and salt are derived with the key from random bytes, the place and the secret. So nobody can
predict them from other random numbers of the program, and a nonce repeats only if all three do.
"""

import hmac
from hashlib import sha256
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES: Final = 32
KEY_ID_BYTES: Final = 8
MAGIC: Final = b"LGBS\x01"
_NONCE, _SALT, _TAG = 12, 16, 16
_HEAD: Final = len(MAGIC) + KEY_ID_BYTES + _NONCE
OVERHEAD: Final = _HEAD + _SALT + _TAG
"""How many bytes a block is longer than its secret."""


class SealingError(Exception):
    """A block can't be opened; the message says why."""


class Sealed(NamedTuple):
    """A secret, sealed."""

    block: bytes
    salted_hash: bytes
    """For the batch's extension 1."""


class ClusterKey:
    """The key of a cluster. Its text shows its id and never the key."""

    def __init__(self, key: bytes, token_secret: bytes = b"") -> None:
        """`key`: 32 secret bytes, the same on all controllers. Raises ValueError.

        `token_secret`: what Kafka's brokers have as delegation.token.secret.key; empty: there is
        none, and tokens are made with the key itself.
        """
        if len(key) != KEY_BYTES:
            raise ValueError(f"a cluster key has {KEY_BYTES} bytes, not {len(key)}")
        self.id = sha256(b"logberg cluster key id\0" + key).digest()[:KEY_ID_BYTES]
        """Tells keys apart, and nothing about the key."""
        self._key = key
        self._token_secret = token_secret
        self._cipher = AESGCM(self._derived(b"sealed blocks"))
        self._names = self._derived(b"nonces and salts")

    def __repr__(self) -> str:
        return f"ClusterKey({self.id.hex()})"

    def seal(self, place: str, secret: bytes, random_bytes: bytes) -> Sealed:
        """Seal a secret for a place, such as `scram/alice/1/storedKey`.

        `random_bytes`: at least 16, drawn anew each time.
        """
        about = b"\0".join((random_bytes, place.encode(), secret))
        drawn = hmac.digest(self._names, about, "sha512")
        nonce, salt = drawn[:_NONCE], drawn[_NONCE : _NONCE + _SALT]
        encrypted = self._cipher.encrypt(nonce, salt + secret, self._bound(place))
        block = MAGIC + self.id + nonce + encrypted
        return Sealed(block, salted_hash(salt, secret))

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
        nonce, encrypted = block[_HEAD - _NONCE : _HEAD], block[_HEAD:]
        try:
            opened = self._cipher.decrypt(nonce, encrypted, self._bound(place))
        except InvalidTag:
            raise SealingError("it was changed, or made for another place") from None
        return opened[:_SALT], opened[_SALT:]

    def with_token_secret(self, token_secret: bytes) -> "ClusterKey":
        """Return the same key with another secret for delegation tokens."""
        return ClusterKey(self._key, token_secret)

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

    def _bound(self, place: str) -> bytes:
        return MAGIC + self.id + place.encode()


def key_id_of(block: bytes) -> bytes | None:
    """Return the id of the key that a block is sealed under; None: it is no sealed block."""
    if len(block) < OVERHEAD or not block.startswith(MAGIC):
        return None
    return block[len(MAGIC) : len(MAGIC) + KEY_ID_BYTES]


def salted_hash(salt: bytes, secret: bytes) -> bytes:
    """Return what the batch's extension 1 holds of a secret."""
    return sha256(salt + secret).digest()
