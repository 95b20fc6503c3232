"""Signed notes, as C2SP's signed-note describes them: a text, and lines of signatures below it.

Rule: a key is known by its name and its id together, and the id is made of the name, the kind and
the public key. A signature of an unknown key is passed over. A signature of a known key that is
wrong spoils the whole note: nobody has a reason to add one except to mislead. Two keys of one name
and id can't be told apart, so the log takes no second one (`controller.managers.head_keys`).

Two kinds of keys are known: `ED25519` signs the text, `COSIGNATURE` signs it with a time
(tlog-cosignature, which witnesses use).
"""

import base64
import binascii
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ledger.errors import LedgerError

ED25519: Final = 1
COSIGNATURE: Final = 4
SEED_BYTES: Final = 32
PUBLIC_BYTES: Final = 32
NOTE_BYTES_MAX: Final = 1_000_000
_SIGNATURE_BYTES: Final = 64
_TIME_BYTES: Final = 8
_SIGNATURES_MAX: Final = 100
_ID_BYTES: Final = 4
_DASH: Final = "\N{EM DASH} "


class NoteError(LedgerError):
    """A note, a key or a signature is not what it is said to be."""


class NoteKey(msgspec.Struct, frozen=True):
    """A public key under a name."""

    name: str
    public: bytes
    kind: int = ED25519

    @property
    def id(self) -> bytes:
        """Four bytes that stand before each signature of the key."""
        said = f"{self.name}\n".encode() + bytes((self.kind,)) + self.public
        return sha256(said).digest()[:_ID_BYTES]

    @property
    def text(self) -> str:
        """The key as one line: name, id and key, with `+` between."""
        key = base64.b64encode(bytes((self.kind,)) + self.public).decode()
        return f"{self.name}+{self.id.hex()}+{key}"

    @classmethod
    def parse(cls, text: str) -> "NoteKey":
        """Read what `text` returned. Raises NoteError."""
        name, _, rest = text.strip().partition("+")
        key_id, _, encoded = rest.partition("+")
        data = _decode(encoded)
        if not is_name(name) or len(data) != 1 + PUBLIC_BYTES:
            raise NoteError(f"not a key of a signed note: {text[:120]!r}")
        key = cls(name, data[1:], data[0])
        if key.kind not in (ED25519, COSIGNATURE) or key.id.hex() != key_id:
            raise NoteError(f"the key's id or kind is not right: {text[:120]!r}")
        return key

    def verifies(self, text: str, signature: bytes) -> bool:
        """Tell whether a signature, without the key's id before it, is this key's of the text."""
        signed = text.encode()
        if self.kind == COSIGNATURE:
            if len(signature) != _TIME_BYTES + _SIGNATURE_BYTES:
                return False
            signed = _timed(text, int.from_bytes(signature[:_TIME_BYTES], "big"))
            signature = signature[_TIME_BYTES:]
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, signed)
        except (InvalidSignature, ValueError):
            return False
        return True


class SigningKey:
    """A private key under a name."""

    def __init__(self, name: str, seed: bytes, kind: int = ED25519) -> None:
        """`seed`: 32 random bytes, which are the private key. Raises NoteError."""
        if not is_name(name):
            raise NoteError(f"a key's name has no spaces and no plus sign: {name[:80]!r}")
        if len(seed) != SEED_BYTES:
            raise NoteError(f"a private key has {SEED_BYTES} bytes, not {len(seed)}")
        self._private = Ed25519PrivateKey.from_private_bytes(seed)
        self.public = NoteKey(name, self._private.public_key().public_bytes_raw(), kind)

    def sign(self, text: str, time_s: int = 0) -> "NoteSignature":
        """Sign a text; a cosignature also says the time, in seconds since 1970 UTC."""
        if self.public.kind == COSIGNATURE:
            when = time_s.to_bytes(_TIME_BYTES, "big")
            signature = when + self._private.sign(_timed(text, time_s))
        else:
            signature = self._private.sign(text.encode())
        return NoteSignature(self.public.name, self.public.id, signature)


class NoteSignature(msgspec.Struct, frozen=True):
    """A signature as it stands in a note."""

    name: str
    key_id: bytes
    signature: bytes

    @property
    def line(self) -> str:
        """The signature's line, with its newline."""
        data = base64.b64encode(self.key_id + self.signature).decode()
        return f"{_DASH}{self.name} {data}\n"

    @classmethod
    def parse(cls, line: str) -> "NoteSignature":
        """Read a line without its newline. Raises NoteError."""
        name, _, encoded = line.removeprefix(_DASH).partition(" ")
        data = _decode(encoded)
        if not line.startswith(_DASH) or not is_name(name) or len(data) <= _ID_BYTES:
            raise NoteError(f"not the line of a signature: {line[:120]!r}")
        return cls(name, data[:_ID_BYTES], data[_ID_BYTES:])


class SignedNote(msgspec.Struct, frozen=True):
    """A text and its signatures. Nothing is verified yet."""

    text: str
    """With a newline at its end."""
    signatures: tuple[NoteSignature, ...]

    def encode(self) -> str:
        """Return the note as it is sent and kept."""
        return self.text + "\n" + "".join(one.line for one in self.signatures)

    @classmethod
    def parse(cls, data: bytes) -> "SignedNote":
        """Read a note. Raises NoteError."""
        if len(data) > NOTE_BYTES_MAX:
            raise NoteError(f"a note has at most {NOTE_BYTES_MAX} bytes, not {len(data)}")
        try:
            whole = data.decode()
        except UnicodeDecodeError:
            raise NoteError("a note is UTF-8, this is not") from None
        text, blank, lines = whole.rpartition("\n\n")
        if not blank or not text or any(ord(sign) < 0x20 and sign != "\n" for sign in whole):
            raise NoteError("not a signed note: a text, an empty line, and lines of signatures")
        if not lines.endswith("\n"):
            raise NoteError("the note ends within a line: it is cut off")
        signatures = lines[:-1].split("\n")
        if len(signatures) > _SIGNATURES_MAX:
            raise NoteError(f"a note has at most {_SIGNATURES_MAX} signatures")
        return cls(text + "\n", tuple(map(NoteSignature.parse, signatures)))

    def signers(self, keys: Iterable[NoteKey]) -> tuple[NoteKey, ...]:
        """Return which of the keys signed the note. Raises NoteError if one's signature is wrong.

        Each is named once, in the order of `keys`.
        """
        known = {(key.name, key.id): key for key in keys}
        found: set[NoteKey] = set()
        for one in self.signatures:
            key = known.get((one.name, one.key_id))
            if key is None:
                continue
            if not key.verifies(self.text, one.signature):
                raise NoteError(f"the signature of {key.text} is wrong")
            found.add(key)
        return tuple(key for key in known.values() if key in found)


def is_name(name: str) -> bool:
    """Tell whether a key can have a name: some text without spaces, control signs and `+`."""
    return bool(name) and name.isprintable() and "+" not in name and not any(map(str.isspace, name))


def _timed(text: str, time_s: int) -> bytes:
    return f"cosignature/v1\ntime {time_s}\n{text}".encode()


def _decode(encoded: str) -> bytes:
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise NoteError(f"not base64: {encoded[:80]!r}") from None
    if base64.b64encode(data).decode() != encoded:
        raise NoteError(f"not the one form of base64: {encoded[:80]!r}")
    return data
