"""The keys of subjects: one secret for each, of which any can be destroyed for good (ADR 0093).

A subject is what a personal value is about, such as `user:alice`. Its key is a leaf of a binary
tree of secrets. Each secret follows from the one above it by HMAC-SHA-256, so whoever holds the
root can make every leaf. To destroy one leaf, the secrets on its path are forgotten, and those
beside the path are kept instead. All other leaves can still be made, and that one never again
(Goldreich, Goldwasser and Micali's tree; Boneh and Waters call it a puncturable function).

So a new subject needs no new secret to be drawn, stored or sent to other nodes. What a node holds
is determined by the root and by which leaves were destroyed.

    magic `LGBK`, format 1 (5 bytes together), id (8), then for each secret, in order: its place in
    the tree (9, the root is 1, the secrets below n are 2n and 2n + 1) and the secret (32)
"""

import hmac
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final

SECRET_BYTES: Final = 32
NUMBER_BYTES: Final = 8
"""A subject's number names its leaf."""
ID_BYTES: Final = 8
MAGIC: Final = b"LGBK\x01"
_DEPTH: Final = 8 * NUMBER_BYTES
_ROOT: Final = 1
_PLACE_BYTES: Final = 9
_ENTRY: Final = _PLACE_BYTES + SECRET_BYTES
_HEAD: Final = len(MAGIC) + ID_BYTES
_SIDES: Final = (b"logberg left", b"logberg right")


class SubjectKeysError(Exception):
    """The bytes hold no subjects' keys; the message says why."""


class SubjectKeys:
    """The secrets of one tree, without the leaves that were destroyed. Its text shows none."""

    def __init__(self, id_: bytes, secrets: Mapping[int, bytes]) -> None:
        """`secrets`: by place in the tree, none of them above another."""
        self.id = id_
        """Tells trees apart. It stays the same whatever is destroyed."""
        self._secrets = dict(secrets)
        self._last: tuple[bytes, bytes] | None = None
        """The newest number that was asked for, and its key: a value has several fields."""

    @classmethod
    def of_root(cls, root: bytes) -> "SubjectKeys":
        """Return a whole tree. `root`: 32 bytes that the system drew."""
        if len(root) != SECRET_BYTES:
            raise ValueError(f"a root has {SECRET_BYTES} bytes, not {len(root)}")
        return cls(sha256(b"logberg subject keys id\0" + root).digest()[:ID_BYTES], {_ROOT: root})

    def __repr__(self) -> str:
        return f"SubjectKeys({self.id.hex()}, {len(self._secrets)} secrets)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SubjectKeys):
            return NotImplemented
        return self.id == other.id and self._secrets == other._secrets

    __hash__ = None  # type: ignore[assignment]

    def key_of(self, number: bytes) -> bytes | None:
        """Return the key of a subject; None: it was destroyed."""
        if self._last is not None and self._last[0] == number:
            return self._last[1]
        leaf = _leaf(number)
        for up in range(_DEPTH + 1):
            secret = self._secrets.get(leaf >> up)
            if secret is not None:
                for down in reversed(range(up)):
                    secret = _below(secret, (leaf >> down) & 1)
                self._last = number, secret
                return secret
        return None

    def without(self, numbers: Iterable[bytes]) -> "SubjectKeys":
        """Return what is left when the keys of these subjects are destroyed."""
        secrets = dict(self._secrets)
        for number in numbers:
            _destroy(secrets, _leaf(number))
        return SubjectKeys(self.id, secrets)

    def encode(self) -> bytes:
        """Return all secrets as bytes, in clear: seal them before they leave the memory."""
        entries = (
            place.to_bytes(_PLACE_BYTES, "big") + secret
            for place, secret in sorted(self._secrets.items())
        )
        return MAGIC + self.id + b"".join(entries)

    @classmethod
    def decode(cls, data: bytes) -> "SubjectKeys":
        """Return what `encode` wrote. Raises SubjectKeysError."""
        if len(data) < _HEAD or not data.startswith(MAGIC) or (len(data) - _HEAD) % _ENTRY:
            raise SubjectKeysError("they are cut off, or of another format")
        secrets: dict[int, bytes] = {}
        for at in range(_HEAD, len(data), _ENTRY):
            place = int.from_bytes(data[at : at + _PLACE_BYTES], "big")
            if not _ROOT <= place < 2 << _DEPTH:
                raise SubjectKeysError("a secret has a place outside the tree")
            secrets[place] = data[at + _PLACE_BYTES : at + _ENTRY]
        return cls(data[len(MAGIC) : _HEAD], secrets)


class SubjectKeyring:
    """The subjects' keys that this process may use now; empty until it may use any.

    Everything that opens or seals values of subjects shares it with what destroys keys. So a key
    that is destroyed is gone for all of them at once.
    """

    def __init__(self) -> None:
        self.keys: SubjectKeys | None = None
        self.awaited = False
        """Values shall be sealed under keys of subjects, and can't be yet."""

    def key_of(self, number: bytes) -> bytes | None:
        """Return the key of a subject; None: there is none here."""
        return None if self.keys is None else self.keys.key_of(number)


def _leaf(number: bytes) -> int:
    if len(number) != NUMBER_BYTES:
        raise ValueError(f"a subject's number has {NUMBER_BYTES} bytes, not {len(number)}")
    return 1 << _DEPTH | int.from_bytes(number, "big")


def _below(secret: bytes, side: int) -> bytes:
    return hmac.digest(secret, _SIDES[side], "sha256")


def _destroy(secrets: dict[int, bytes], leaf: int) -> None:
    """Replace the secret above a leaf by those beside the path to the leaf."""
    for up in range(_DEPTH + 1):
        secret = secrets.pop(leaf >> up, None)
        if secret is not None:
            for down in reversed(range(up)):
                place = leaf >> down
                secrets[place ^ 1] = _below(secret, (place & 1) ^ 1)
                secret = _below(secret, place & 1)
            return
