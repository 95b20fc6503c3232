"""Whose names have pseudonyms, by the settings: `pseudonyms = ["User:*@example.com"]`.

Rule: a principal that the settings name keeps its name. It stands in a file in clear, and the
settings compare it with callers.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final

from controller.config import ControllerConfig
from metadata.pseudonyms import is_pseudonym

_USER: Final = "User:"
_NO_PERSON: Final = frozenset({"User:*", "User:ANONYMOUS", _USER})


class Covering:
    """Says which principals get pseudonyms."""

    def __init__(self, patterns: Iterable[str], named_by_settings: Iterable[str]) -> None:
        """`patterns`: principals, in which `*` stands for any characters."""
        self._patterns = tuple(patterns)
        self._named_by_settings = frozenset(named_by_settings)

    @property
    def nobody(self) -> bool:
        """Whether no principal gets a pseudonym."""
        return not self._patterns

    def may_be_person(self, principal: str) -> bool:
        """Return whether a principal is a name that may have a pseudonym, whatever the patterns."""
        return (
            principal.startswith(_USER)
            and principal not in _NO_PERSON
            and principal not in self._named_by_settings
            and not is_pseudonym(principal)
        )

    def covers_word(self, word: str) -> bool:
        """Return whether a word is surely a name that is covered, where only texts are known.

        A pattern finds words only by what is no letter or digit in it, such as `@`.
        """
        return self.may_be_person(_USER + word) and any(
            fnmatchcase(_USER + word, pattern)
            for pattern in self._patterns
            if not pattern.removeprefix(_USER).replace("*", "a").isalnum()
        )

    def covers(self, principal: str) -> bool:
        """Return whether a principal is a person who gets a pseudonym."""
        return (
            bool(self._patterns)
            and self.may_be_person(principal)
            and any(fnmatchcase(principal, pattern) for pattern in self._patterns)
        )


def covering_of(config: ControllerConfig) -> Covering:
    """Return whose names have pseudonyms by a controller's settings."""
    named = config.super_users.union(config.named_by_settings, *config.delegations.values())
    return Covering(config.pseudonyms, named)
