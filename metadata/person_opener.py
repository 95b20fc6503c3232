"""Opens what the log holds sealed of people, while somebody looks: addresses and names (ADR 0093).

The name behind a pseudonym is shown beside it, and never in its place: programs compare the
principal with entries and with other batches.

Rule: a name is shown only as long as the newest state ties it to the pseudonym. Whoever opens a
name shows it and keeps it nowhere.
"""

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, Final

from metadata.image.erasures import EMPTY_ERASURES, ErasuresImage
from metadata.messages.records_json import record_to_json
from metadata.people import USER, opened_name
from metadata.pseudonyms import is_pseudonym, name_place, person_words
from metadata.records import AttemptsRecord, PseudonymRecord, Record
from metadata.sealed_addresses import AddressOpener
from metadata.sealing import ClusterKey

NAME_FIELDS: Final = {"principal": "principalName", "onBehalfOf": "onBehalfOfName"}
"""By the field of a principal: the field beside it that holds the name."""


class PersonOpener(AddressOpener):
    """Opens addresses, and the names behind pseudonyms."""

    def __init__(
        self, key: ClusterKey | None, erasures: Callable[[], ErasuresImage] = lambda: EMPTY_ERASURES
    ) -> None:
        """`key` None: nothing can be opened.

        `erasures` returns those of the newest state, with the pseudonyms. Without them, no name can
        be opened.
        """
        super().__init__(key)
        self.erasures = erasures

    def of_state(self, erasures: ErasuresImage) -> "PersonOpener":
        """Return the same with the pseudonyms of another state. They share what they opened."""
        self.look_at_keys()
        other = copy(self)
        other.erasures = lambda: erasures
        return other

    def name_of(self, principal: str) -> str | None:
        """Return the name behind a principal, without `User:`.

        None: the principal is no pseudonym, or nobody here can open its name.
        """
        if self.key is None or not is_pseudonym(principal):
            return None
        record = self.erasures().pseudonyms.get(principal.removeprefix(USER))
        return None if record is None else self.name_in(record)

    def name_in(self, record: PseudonymRecord) -> str | None:
        """Return the name in a record; None: nobody here can open it."""
        key = self.key
        if key is None:
            return None
        place = name_place(record.pseudonym)
        return self.remembered(place, "", lambda: opened_name(key, record))

    def shown(self, principal: str) -> str:
        """Return a principal for people to read, with its name if that can be opened."""
        return person_words(principal, self.name_of(principal))

    def cause(self, words: dict[str, str]) -> dict[str, str]:
        """Open the address and the names in the words of a batch's cause (`BatchHeader.cause`)."""
        return self.named(super().cause(words))

    def record_words(self, record: Record, *, show_secrets: bool = False) -> dict[str, Any]:
        """Return a record as JSON (`record_to_json`), with what can be opened in clear."""
        words = record_to_json(self.record(record), show_secrets=show_secrets)
        if isinstance(record, AttemptsRecord):
            words["data"] = self.named(words["data"])
        return words

    def named(self, words: dict[str, Any]) -> dict[str, Any]:
        """Return words with each name that can be opened beside its principal."""
        names = {field: self._name_at(words, field) for field in NAME_FIELDS}
        return with_names(words, names) if any(names.values()) else words

    def _name_at(self, words: Mapping[str, Any], field: str) -> str | None:
        principal = words.get(field)
        return self.name_of(principal) if isinstance(principal, str) else None


def with_names(words: Mapping[str, Any], names: Mapping[str, str | None]) -> dict[str, Any]:
    """Return words with names beside principals; `names` has them by the principal's field."""
    found: dict[str, Any] = {}
    for field, value in words.items():
        found[field] = value
        name = names.get(field)
        if name is not None:
            found[NAME_FIELDS[field]] = name
    return found


NO_OPENER: Final = PersonOpener(None)
"""It opens nothing."""
