"""Finds what a log has of a person whose name somebody types: under the pseudonym, and in clear.

Rule: the name becomes the pseudonym before the search, so neither the log nor an index has to know
it. A log from before the setting `pseudonyms` has the name itself, so both are searched for.
"""

from typing import Final

import msgspec

from audit.questions.search import Filter
from metadata.people import People, split_at_name
from metadata.person_opener import PersonOpener
from metadata.steps import finished

_PATTERN: Final = frozenset("*?[")


class PeopleSought:
    """The pseudonyms of one log, by name."""

    def __init__(self, opener: PersonOpener) -> None:
        """With an opener that opens nothing, nobody is found by name."""
        self.opener = opener
        """May be replaced by one with the same key for a later state."""
        self._people = People(opener.key)

    def also(self, typed: str) -> str | None:
        """Return the same words with the pseudonym for the name; None: no such name has one.

        `user:alice@example.com` becomes `user:p-…`, and so do `User:alice@example.com` and the name
        alone. A pattern with `*` is no name.
        """
        before, name = split_at_name(typed) or ("", typed)
        is_name = (before or ":" not in typed) and _PATTERN.isdisjoint(name)
        if self.opener.key is None or not is_name:
            return None
        finished(self._people.follow(self.opener.erasures()))
        pseudonym = self._people.pseudonym_of(name)
        return None if pseudonym is None else before + pseudonym

    def patterns(self, typed: str) -> tuple[str, ...]:
        """Return what to search for: the words as they are, and those with the pseudonym."""
        also = self.also(typed)
        return (typed,) if also is None else (typed, also)

    def with_pseudonyms(self, wanted: Filter) -> Filter:
        """Return a search that also finds by the pseudonym whom it names."""
        who = wanted.principal
        return msgspec.structs.replace(
            wanted,
            also_principal=None if who is None else self.also(who),
            resources=tuple(word for each in wanted.resources for word in self.patterns(each)),
        )
