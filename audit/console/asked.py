"""What a request asks for, read from its query.

Rule: an unknown parameter or a bad value is refused with a sentence that names it.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from audit.console.moments_of_index import IndexedMoments
from audit.index.searching import RecordSearch
from audit.questions.search import Filter, request_id, type_name
from audit.questions.state_words import TABLE_OF
from audit.reading.settling import ABORTED, OPEN, SETTLED

PAGE: Final = 100
PAGE_MAX: Final = 500
_OUTCOMES: Final = (SETTLED, ABORTED, OPEN)
_LONGEST: Final = 300
SEARCH_NAMES: Final = (
    "q",
    "principal",
    "address",
    "operation",
    "type",
    "resource",
    "topic",
    "broker",
    "request",
    "outcome",
    "from",
    "to",
)


OtherWord = Callable[[str], str | None]
"""Returns what else to search for in the place of a word; None: nothing."""


class AskedError(ValueError):
    """The query can't be understood; the message says what to write."""


class ConsoleQuery:
    """The query of one request. Each parameter is read once; `done` refuses the rest."""

    def __init__(self, query: Mapping[str, str]) -> None:
        self._query = dict(query)

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter. Raises AskedError."""
        said = self._query.pop(name, default).strip()
        if len(said) > _LONGEST:
            raise AskedError(f"{name} is longer than {_LONGEST} characters.")
        return said

    def number(self, name: str, default: int, most: int) -> int:
        """Return a number from 0 to `most`. Raises AskedError."""
        said = self.text(name)
        if not said:
            return default
        if not (said.isascii() and said.isdecimal()) or int(said) > most:
            raise AskedError(f"{name} must be a number from 0 to {most}, not {said!r}.")
        return int(said)

    def limit(self) -> int:
        """Return how many rows the answer may have."""
        return max(1, self.number("limit", PAGE, PAGE_MAX))

    def table(self, *, needed: bool = True) -> str:
        """Return the name of a table. Raises AskedError."""
        said = self.text("table")
        if said in TABLE_OF or not (said or needed):
            return said
        raise AskedError(f"there is no table {said!r}. The tables are {', '.join(TABLE_OF)}.")

    def rest(self) -> dict[str, str]:
        """Return the parameters that nobody has read, for a view that is asked repeatedly."""
        rest, self._query = self._query, {}
        return rest

    def done(self) -> None:
        """Refuse parameters that nobody has read. Raises AskedError."""
        if self._query:
            raise AskedError(f"the parameter {min(self._query)!r} is unknown here.")

    def search(self, moments: IndexedMoments, pseudonym: OtherWord) -> RecordSearch:
        """Return the search. Raises AskedError, SearchError, MomentError.

        `pseudonym` returns the same words with the pseudonym in the place of a person's name.
        """
        said: dict[str, Any] = {name: self.text(name) for name in SEARCH_NAMES}
        also: list[tuple[str, ...]] = []
        if said["topic"]:
            also.append((f"topic:{said['topic']}",))
        if said["broker"]:
            also.append((f"broker:{said['broker']}", f"controller:{said['broker']}"))
        outcomes = tuple(word for word in said["outcome"].split(",") if word)
        if unknown := set(outcomes) - set(_OUTCOMES):
            raise AskedError(f"there is no outcome {min(unknown)!r}: use {', '.join(_OUTCOMES)}.")
        types = tuple(type_name(word) for word in said["type"].replace(",", " ").split())
        others = {word: pseudonym(word) for word in said["q"].split()}
        resources = [(word, pseudonym(word)) for word in said["resource"].split()]
        fits = Filter(
            principal=said["principal"] or None,
            also_principal=pseudonym(said["principal"]) if said["principal"] else None,
            operation=said["operation"] or None,
            resources=tuple(word for both in resources for word in both if word),
            types=types,
            request_id=request_id(said["request"]) if said["request"] else None,
            outcomes=outcomes,
        )
        return RecordSearch(
            filter=fits,
            also=tuple(also),
            address=said["address"] or None,
            text=said["q"],
            other_words={word: other for word, other in others.items() if other is not None},
            start=moments.first(said["from"]),
            end=moments.last(said["to"]),
        )
