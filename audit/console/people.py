"""Who is behind the pseudonyms of a console's log, by the state at the end of its index.

Rule: an answer shows names, and the index has none. An erasure ends a name here as soon as the
index has read the erasure, and when the keys are read again without that person's key.
"""

from collections.abc import Callable
from threading import Lock
from typing import Final

import msgspec

from audit.index.log_index import LogIndex
from audit.questions.people_sought import PeopleSought
from audit.questions.search import Filter
from metadata.buckets import BucketMap, mix_text
from metadata.image.erasures import EMPTY_ERASURES, ErasuresImage
from metadata.messages.records_json import record_type_name
from metadata.person_opener import NO_OPENER, PersonOpener
from metadata.records import PseudonymRecord, SubjectErasedRecord

_TABLE: Final = "pseudonyms"
_NEWS: Final = Filter(
    types=(record_type_name(PseudonymRecord), record_type_name(SubjectErasedRecord))
)


class ConsolePeople:
    """The pseudonyms of one log, for any thread."""

    def __init__(self) -> None:
        self._reading = Lock()
        self._seeking = Lock()
        self._index: LogIndex | None = None
        self._read_to = -1
        self._erasures = EMPTY_ERASURES
        self._sought = PeopleSought(NO_OPENER)

    def opener(self, keys: PersonOpener, index: LogIndex) -> PersonOpener:
        """Return what opens names with these keys as the index ties them to pseudonyms."""
        with self._reading:
            return keys.of_state(self._newest(index))

    def also(self, opener: PersonOpener) -> Callable[[str], str | None]:
        """Return what finds the pseudonym in the place of a typed name; see `PeopleSought`."""

        def also(typed: str) -> str | None:
            with self._seeking:
                if self._sought.opener.key is not opener.key:
                    self._sought = PeopleSought(opener)
                self._sought.opener = opener
                return self._sought.also(typed)

        return also

    def _newest(self, index: LogIndex) -> ErasuresImage:
        """Return the erasures image with the pseudonyms at the index's end; it has no erasures."""
        end, is_new = index.mark.log_end, index is not self._index
        if is_new or (end != self._read_to and index.offsets(_NEWS, self._read_to, end, limit=1)):
            known = BucketMap(mix_text, _ties(index, end))
            self._erasures = msgspec.structs.replace(EMPTY_ERASURES, pseudonyms=known)
        self._index, self._read_to = index, end
        return self._erasures


def _ties(index: LogIndex, at: int) -> dict[str, PseudonymRecord]:
    """Return the records of the pseudonyms; none if the state is not known."""
    try:
        records = index.state_records(at, _TABLE)
    except LookupError:
        return {}
    return {one.pseudonym: one for one in records if isinstance(one, PseudonymRecord)}
