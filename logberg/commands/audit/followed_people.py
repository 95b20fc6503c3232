"""What `logberg audit follow --cluster-key` opens while the log grows, and whom it finds by name.

Rule: a name is shown only as long as the log, as far as it was read, ties it to the pseudonym. A
record that ties a name, or ends a tie, counts before it is printed. The keys are read again after a
second, as for the console, so what is erased in the folder is not opened here any more.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from audit.places.replicas import Replica
from audit.questions.people_sought import PeopleSought
from audit.questions.search import Filter
from audit.reading.settling import Logged
from ledger.reader import LedgerReader
from logberg.client.cluster_key_file import with_subject_keys
from logberg.commands.audit.opening_option import EndOfLog, KeysInUse, opener_of
from metadata.image import EMPTY, MetadataDelta
from metadata.image.erasures import EMPTY_ERASURES, ErasuresImage
from metadata.person_opener import PersonOpener
from metadata.records import PseudonymRecord, SubjectErasedRecord

_NEWS: Final = (PseudonymRecord, SubjectErasedRecord)


class FollowedPeople:
    """The pseudonyms of one log that grows."""

    def __init__(
        self,
        first: PersonOpener,
        keys: Callable[[], PersonOpener],
        erasures: ErasuresImage,
        end: int,
    ) -> None:
        """`first` opens with the keys of the beginning, and what `keys` returns with those of now.

        If `first` opens nothing, nothing is opened later. `erasures`: those of the state at the
        offset `end`.
        """
        self._keys = keys
        self._end = end
        self._image = msgspec.structs.replace(EMPTY, erasures=erasures)
        self._keys_used, self._image_used = first, self._image
        self._opener = first.of_state(erasures)
        self._sought = PeopleSought(self._opener)

    def learn(self, logged: Logged) -> None:
        """Learn from a record. The caller passes each one in order, before it is shown."""
        if self._sought.opener.key is None:
            return
        base = logged.settled_base
        if isinstance(logged.record, _NEWS) and base is not None and base >= self._end:
            header = logged.header
            delta = MetadataDelta(self._image, with_state_hash=False)
            delta.replay(logged.record, logged.offset)
            delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
            self._image = delta.apply()

    def opener(self) -> PersonOpener:
        """Return what opens addresses and names now. It is the same one until something changes."""
        keys = self._keys()
        if keys is not self._keys_used or self._image is not self._image_used:
            self._keys_used, self._image_used = keys, self._image
            self._opener = keys.of_state(self._image.erasures)
        return self._opener

    def with_pseudonyms(self, wanted: Filter) -> Filter:
        """Return a search that also finds by the pseudonym whom it names."""
        opener = self.opener()
        if opener.key is None or opener.key.subjects.keys is None:
            # The keys can't be read just now. A person who was found before must stay found:
            # otherwise what this person does meanwhile would be left out.
            opener = self._sought.opener.of_state(self._image.erasures)
        elif opener.key is not self._sought.opener.key:
            self._sought = PeopleSought(opener)
        self._sought.opener = opener
        return self._sought.with_pseudonyms(wanted)


def people_followed(
    path: Path | None, replica: Replica, reader: LedgerReader, now: Callable[[], float]
) -> FollowedPeople:
    """Return the people of a log, as its end ties them now. Raises Failure.

    `path`: the file of the cluster key; None: nothing is opened. `reader` has read the log up to
    its end. `now`: seconds of a clock that never goes back.
    """
    first = opener_of(path, replica)
    key = first.key
    if key is None:
        return FollowedPeople(first, lambda: first, EMPTY_ERASURES, reader.log_end)
    keys = KeysInUse(lambda: with_subject_keys(key, replica.disk), now)
    erasures = EndOfLog(replica, reader).erasures()
    return FollowedPeople(first, keys.opener, erasures, reader.log_end)
