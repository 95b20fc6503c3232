"""Which name stands behind which pseudonym, for those who have the keys (ADR 0093).

The log holds each name sealed. To find the pseudonym of a name, a node opens all of them once and
follows the changes from there on. So the log needs no hash of a name, which somebody could test
guesses against.

Rule: an answer is of the image that was followed last. `follow` costs by what has changed since.
"""

import re
from collections.abc import Generator
from typing import Final

from metadata.buckets import STEP, BucketMap
from metadata.image.erasures import EMPTY_ERASURES, ErasuresImage
from metadata.pseudonyms import name_place, number_of_pseudonym
from metadata.records import PseudonymRecord
from metadata.sealed_blocks import SealingError
from metadata.sealing import ClusterKey
from metadata.subject_keys import SubjectKeys

_ONE_OPENED: Final = STEP
"""To open a name takes as long as to compare so many entries: a tenth of a millisecond."""
_EXPECTED_MAX: Final = 10_000
_PADDED_TO: Final = 64
_LENGTH_BYTES: Final = 2
USER: Final = "User:"
_BEFORE_NAME: Final = re.compile("(?:tried:)?user:|(?:by:)?User:|quota:(?:.+?,)?user=")
"""What stands before a name in words about a person: in a principal, and in `Record.subjects`."""


class People:
    """The names behind the pseudonyms of an image, in memory."""

    def __init__(self, key: ClusterKey | None) -> None:
        """`key` None: nothing can be opened."""
        self._key = key
        self._keys: SubjectKeys | None = None
        self._followed: BucketMap[str, PseudonymRecord] = EMPTY_ERASURES.pseudonyms
        self._pseudonyms: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._expected: dict[str, str] = {}
        """Names by pseudonym, of records that this node made: it needs not open them."""

    def expect(self, pseudonym: str, name: str) -> None:
        """Note a name that this node has sealed: its record may be in the next image."""
        if len(self._expected) >= _EXPECTED_MAX:
            self._expected.clear()
        self._expected[pseudonym] = name

    def has_followed(self, image: ErasuresImage) -> bool:
        """Return whether answers are of this image."""
        return self._followed is image.pseudonyms or (
            not len(self._followed) and not len(image.pseudonyms)
        )

    @property
    def opened_all(self) -> bool:
        """Whether every name of the image could be opened."""
        return len(self._names) == len(self._followed)

    @property
    def has_keys(self) -> bool:
        """Whether the keys of subjects are here."""
        return self._key is not None and self._key.subjects.keys is not None

    def follow(self, image: ErasuresImage) -> Generator[None, None, None]:
        """Open the names that are new in an image, and forget those that are gone.

        Whoever begins it runs it to its end before anybody follows another image.
        """
        keys = None if self._key is None else self._key.subjects.keys
        if keys is None or (self._keys is not None and keys.id != self._keys.id):
            self._forget()
        self._keys = keys
        if keys is None or self.has_followed(image):
            return
        done = 0
        for change in image.pseudonyms.differences(self._followed):
            if change is None:
                done += 1
            elif change.after is None:
                self._remove(change.key)
            elif change.key not in self._names:
                done += _ONE_OPENED if self._open(change.after) else 1
            if done >= STEP:
                done = 0
                yield
        self._followed = image.pseudonyms

    def pseudonym_of(self, name: str) -> str | None:
        """Return the pseudonym of a name; None: it has none."""
        return self._pseudonyms.get(name)

    def name_of(self, pseudonym: str) -> str | None:
        """Return the name behind a pseudonym; None: there is none, or it can't be opened."""
        return self._names.get(pseudonym)

    def _open(self, record: PseudonymRecord) -> bool:
        """Take a record; return whether it had to be opened."""
        expected = self._expected.pop(record.pseudonym, None)
        name = opened_name(self._key, record) if expected is None else expected
        if name is not None:
            self._names[record.pseudonym] = name
            self._pseudonyms[name] = record.pseudonym
        return expected is None

    def _remove(self, pseudonym: str) -> None:
        # The name may also stand there, from a decision that was not written. The others that are
        # forgotten with it are opened when their records come.
        self._expected.clear()
        name = self._names.pop(pseudonym, None)
        if name is not None and self._pseudonyms.get(name) == pseudonym:
            del self._pseudonyms[name]

    def _forget(self) -> None:
        self._followed = EMPTY_ERASURES.pseudonyms
        self._pseudonyms.clear()
        self._names.clear()
        self._expected.clear()


def split_at_name(words: str) -> tuple[str, str] | None:
    """Return what stands before the name in words about a person, and the name.

    `user:alice`, `User:alice` and `quota:client-id=app,user=alice` are such words. None: the words
    are about no person.
    """
    found = _BEFORE_NAME.match(words)
    return None if found is None else (found[0], words[found.end() :])


def opened_name(key: ClusterKey | None, record: PseudonymRecord) -> str | None:
    """Return the name in a record; None: it can't be opened, or not here."""
    if key is None or number_of_pseudonym(record.pseudonym) is None:
        return None
    try:
        opened = key.open(name_place(record.pseudonym), record.name)
    except SealingError:
        return None
    length = int.from_bytes(opened[:_LENGTH_BYTES], "big")
    return opened[_LENGTH_BYTES : _LENGTH_BYTES + length].decode(errors="replace")


def as_sealed(name: str) -> bytes:
    """Return a name as it is sealed: its length (2 bytes), UTF-8, and zeros up to 64 bytes or more.

    So a block does not show how long the name is. Raises OverflowError for more than 65,535 bytes.
    """
    data = name.encode()
    data = len(data).to_bytes(_LENGTH_BYTES, "big") + data
    return data.ljust(-(-len(data) // _PADDED_TO) * _PADDED_TO, b"\0")
